// Finds entries in files, and collects new ones.
#include "runtime_check/packing/weight_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

// Maximum size of unused entries (weights for other shapes), as a multiple of the size of the used ones.
constexpr uint64_t kMostOthers = 3;

WeightCache::Count CountOf(const std::map<std::string, PackedBytes>& entries) {
  WeightCache::Count count;
  for (const auto& [key, packed] : entries) {
    ++count.entries;
    count.bytes += static_cast<int64_t>(packed.bytes.size());
  }
  return count;
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
  // The entry that was found did not match.
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

std::string DifferenceOf(const PackedMaker& found, const PackedMaker& expected) {
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

}  // namespace permafrost
