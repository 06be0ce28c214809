// Opens files of weights and checks their maker.
#include "tools/model/weight_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/byte_source.h"
#include "io/checked_files.h"
#include "io/formats/memmapped_package.h"
#include "runtime_check/packing/packed_region.h"

namespace permafrost {

std::shared_ptr<const PackedWeightsFile> FindPackedRegion(FileSystem& files, const std::string& path,
                                                          absl::string_view delegate, absl::string_view precision,
                                                          absl::string_view identity, std::vector<std::string>* notes) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  // A pipe can be read only once, for the model.
  if (!stat.ok() || !stat->is_regular) return nullptr;
  absl::StatusOr<FileView> file = files.MapFile(path);
  if (!file.ok()) return nullptr;
  constexpr size_t kEnd = 4096;
  const absl::string_view bytes = file->bytes;
  const absl::string_view tail = bytes.substr(bytes.size() - std::min(bytes.size(), kEnd));
  const std::shared_ptr<const ByteSource> source = MemorySource(*std::move(file));
  if (!LooksLikePackage(*source, bytes.substr(0, kEnd), tail)) return nullptr;
  // Errors of the package are reported when its graph is read.
  const absl::StatusOr<std::shared_ptr<const Package>> package = OpenPackage(source);
  if (!package.ok()) return nullptr;
  absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> region =
      FindPackedRegion(**package, delegate, precision, identity);
  if (region.ok()) return *std::move(region);
  notes->push_back(
      absl::StrCat("the weights that are packed in '", path, "' are not used: ", region.status().message()));
  return nullptr;
}

std::string CachePath(const std::string& cache_dir, const PackedMaker& maker) {
  ContentHash hash;
  for (const std::string* text : {&maker.delegate, &maker.identity, &maker.precision, &maker.plan}) hash.Add(*text);
  return absl::StrFormat("%s/%s-%s-%016x.packed", cache_dir, maker.model, maker.precision, hash.value());
}

std::shared_ptr<WeightCache> OpenWeightCache(FileSystem& files, const std::string& path, PackedMaker maker,
                                             std::vector<std::string>* notes) {
  auto cache = std::make_shared<WeightCache>(std::move(maker));
  if (!files.Exists(path)) return cache;
  const auto open = [&]() -> absl::Status {
    PF_ASSIGN_OR_RETURN(FileView view, MapOwnFile(files, path));
    PF_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeightsFile> file, OpenPackedWeights(std::move(view)));
    const std::string difference = DifferenceOf(file->maker(), cache->maker());
    if (!difference.empty()) return absl::FailedPreconditionError(difference);
    cache->Use(std::move(file), PackedTrust::kChecked);
    return absl::OkStatus();
  };
  const absl::Status status = open();
  if (!status.ok()) notes->push_back(absl::StrCat("'", path, "' is not used, and made again: ", status.message()));
  return cache;
}

absl::Status SaveWeightCache(const WeightCache& cache, FileSystem& files, const std::string& path) {
  if (cache.packed().entries == 0) return absl::OkStatus();
  PF_RETURN_IF_ERROR(files.MakeDirectory(path.substr(0, path.rfind('/'))));
  const WeightCache::Content content = cache.ToWrite();
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, NewOwnWriter(files, path, content.size()));
  PF_RETURN_IF_ERROR(content.Write(writer.get()));
  return writer->Commit();
}

}  // namespace permafrost
