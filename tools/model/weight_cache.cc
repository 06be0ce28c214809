// Finds entries in files, and collects new ones.
#include "tools/model/weight_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/content_hash.h"
#include "graph/status.h"
#include "io/byte_source.h"
#include "io/formats/memmapped_package.h"

namespace permafrost {
namespace {

// What nobody asked for this time, other shapes' weights, may be so many times what somebody did.
constexpr uint64_t kMostOthers = 3;

WeightCache::Count CountOf(const std::map<std::string, PackedBytes>& entries) {
  WeightCache::Count count;
  for (const auto& [key, packed] : entries) {
    ++count.entries;
    count.bytes += static_cast<int64_t>(packed.bytes.size());
  }
  return count;
}

// What of the maker is another, or nothing.
std::string Difference(const PackedMaker& found, const PackedMaker& expected) {
  const auto differ = [](absl::string_view what, absl::string_view a, absl::string_view b) {
    return a == b ? std::string() : absl::StrCat("found ", what, " '", a, "', expected '", b, "'");
  };
  for (const std::string& text :
       {differ("weights for", found.identity, expected.identity), differ("the model", found.model, expected.model),
        differ("the delegate", found.delegate, expected.delegate),
        differ("precision", found.precision, expected.precision)}) {
    if (!text.empty()) return text;
  }
  return found.plan == expected.plan ? "" : "found another plan of precisions";
}

}  // namespace

std::optional<PackedBytes> WeightCache::Find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto* known : {&packed_, &found_}) {
    const auto entry = known->find(key);
    if (entry != known->end()) return entry->second;
  }
  for (const Source& source : sources_) {
    const PackedEntry* const entry = source.file->Find(key);
    if (entry == nullptr) continue;
    if (source.trust == PackedTrust::kChecked) {
      const absl::Status status = source.file->Check(*entry);
      if (!status.ok()) {
        notes_.push_back(std::string(status.message()));
        continue;
      }
    }
    FileView view = source.file->Bytes(*entry);
    return found_.emplace(key, PackedBytes{view.bytes, std::move(view.owner)}).first->second;
  }
  return std::nullopt;
}

void WeightCache::Keep(const std::string& key, PackedBytes packed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // What was found did not fit.
  found_.erase(key);
  packed_[key] = std::move(packed);
}

WeightCache::Count WeightCache::found() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CountOf(found_);
}

WeightCache::Count WeightCache::packed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CountOf(packed_);
}

std::vector<std::string> WeightCache::notes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return notes_;
}

WeightCache::Content::Content(PackedMaker maker, std::map<std::string, PackedBytes> entries)
    : maker_(std::move(maker)), entries_(std::move(entries)) {
  for (const auto& [key, packed] : entries_) pieces_.push_back({key, packed.bytes});
}

WeightCache::Content WeightCache::ToWrite() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, PackedBytes> entries = packed_;
  entries.insert(found_.begin(), found_.end());
  const uint64_t used = static_cast<uint64_t>(CountOf(entries).bytes);
  std::map<std::string, PackedBytes> others;
  for (const Source& source : sources_) {
    for (const PackedEntry& entry : source.file->entries()) {
      const std::string key(entry.key);
      if (entries.count(key) > 0 || !source.file->Check(entry).ok()) continue;
      FileView view = source.file->Bytes(entry);
      others.emplace(key, PackedBytes{view.bytes, std::move(view.owner)});
    }
  }
  if (static_cast<uint64_t>(CountOf(others).bytes) <= kMostOthers * used) entries.insert(others.begin(), others.end());
  return Content(maker_, std::move(entries));
}

std::string PackedRegionName(absl::string_view delegate, absl::string_view precision) {
  return absl::StrCat(kPackedRegionPrefix, delegate, ".", precision);
}

std::shared_ptr<const PackedWeightsFile> FindPackedRegion(FileSystem& files, const std::string& path,
                                                          absl::string_view delegate, absl::string_view precision,
                                                          absl::string_view identity,
                                                          std::vector<std::string>* notes) {
  const absl::StatusOr<FileStat> stat = files.Stat(path);
  // A pipe can be read but once, and that is for the model.
  if (!stat.ok() || !stat->is_regular) return nullptr;
  absl::StatusOr<FileView> file = files.MapFile(path);
  if (!file.ok()) return nullptr;
  constexpr size_t kEnd = 4096;
  const absl::string_view bytes = file->bytes;
  const absl::string_view tail = bytes.substr(bytes.size() - std::min(bytes.size(), kEnd));
  const std::shared_ptr<const ByteSource> source = MemorySource(*std::move(file));
  if (!LooksLikePackage(*source, bytes.substr(0, kEnd), tail)) return nullptr;
  // Whoever reads the graph says what is wrong with the package.
  const absl::StatusOr<std::shared_ptr<const Package>> package = OpenPackage(source);
  const std::string name = PackedRegionName(delegate, precision);
  if (!package.ok() || (*package)->Find(name) == nullptr) return nullptr;
  const auto open = [&]() -> absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> {
    PF_ASSIGN_OR_RETURN(FileView view, (*package)->Read(name));
    PF_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeightsFile> region, OpenPackedWeights(std::move(view)));
    const PackedMaker& maker = region->maker();
    const std::string difference =
        Difference(maker, {"", std::string(delegate), std::string(identity), std::string(precision), maker.plan});
    if (!difference.empty()) return absl::FailedPreconditionError(difference);
    return region;
  };
  absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> region = open();
  if (region.ok()) return *std::move(region);
  notes->push_back(absl::StrCat("the weights that are packed in '", path, "' are not used: ",
                                region.status().message()));
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
    PF_ASSIGN_OR_RETURN(FileView view, files.MapFile(path));
    PF_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeightsFile> file, OpenPackedWeights(std::move(view)));
    const std::string difference = Difference(file->maker(), cache->maker());
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
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, files.NewWriter(path, content.size()));
  PF_RETURN_IF_ERROR(content.Write(writer.get()));
  return writer->Commit();
}

}  // namespace permafrost
