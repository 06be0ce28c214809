// Packed weights in files: in a package, or in a folder that the user names.
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

// The weights that lie packed in the package at `path` for this delegate, precision and machine. Null where there are
// none, for another file than a package, and for one that is compressed or encrypted: its bytes cannot be mapped. When
// they are damaged, or for another machine, *notes says so.
std::shared_ptr<const PackedWeightsFile> FindPackedRegion(FileSystem& files, const std::string& path,
                                                          absl::string_view delegate, absl::string_view precision,
                                                          absl::string_view identity, std::vector<std::string>* notes);

// Where in the folder `cache_dir` weights of this maker are.
std::string CachePath(const std::string& cache_dir, const PackedMaker& maker);

// A cache that looks there. What is damaged, or of another maker, is ignored; *notes says so.
std::shared_ptr<WeightCache> OpenWeightCache(FileSystem& files, const std::string& path, PackedMaker maker,
                                             std::vector<std::string>* notes);

// Writes the cache there if something was packed that was not there. Makes the folder, but not its parents.
absl::Status SaveWeightCache(const WeightCache& cache, FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_WEIGHT_FILES_H_
