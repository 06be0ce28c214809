// Packed weights in files: in a package, or in a folder given by the user.
#ifndef PERMAFROST_TOOLS_MODEL_WEIGHT_FILES_H_
#define PERMAFROST_TOOLS_MODEL_WEIGHT_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"
#include "io/formats/packed_weights.h"
#include "runtime_check/packing/weight_cache.h"

namespace permafrost {

// Returns the packed weights in the package at `path` for this delegate, precision and machine. Null if there are none,
// if the file is not a package, or if it is compressed or encrypted: its bytes cannot be mapped. If the weights are
// damaged, or for another machine, adds a line to *notes.
std::shared_ptr<const PackedWeightsFile> FindPackedRegion(FileSystem& files, const std::string& path,
                                                          absl::string_view delegate, absl::string_view precision,
                                                          absl::string_view identity, std::vector<std::string>* notes);

// Returns the path, in the folder `cache_dir`, of the weights of this maker.
std::string CachePath(const std::string& cache_dir, const PackedMaker& maker);

// Returns a cache backed by that file. Damaged weights, and those of another maker, are ignored, with a line in *notes.
std::shared_ptr<WeightCache> OpenWeightCache(FileSystem& files, const std::string& path, PackedMaker maker,
                                             std::vector<std::string>* notes);

// Writes the cache to the folder if it contains newly packed weights. Creates the folder, but not its parents.
absl::Status SaveWeightCache(const WeightCache& cache, FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_WEIGHT_FILES_H_
