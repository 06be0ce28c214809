// A cache of the weights that a delegate has packed, stored in a package beside the model or in a folder.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKING_WEIGHT_CACHE_H_
#define PERMAFROST_RUNTIME_CHECK_PACKING_WEIGHT_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/base/wire.h"
#include "io/formats/packed_weights.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

// The check of an entry before it is used.
enum class PackedTrust {
  kAsTheModel,  // None: the entry is in the model's own file and trusted like its other weights.
  kChecked,     // Each byte is read once and compared with the hash.
};

class WeightCache final : public PackedWeights {
 public:
  explicit WeightCache(PackedMaker maker) : maker_(std::move(maker)) {}

  // Adds a file to search for entries. REQUIRES: Find was not called yet.
  void Use(std::shared_ptr<const PackedWeightsFile> file, PackedTrust trust) { sources_.push_back({file, trust}); }

  std::optional<PackedBytes> Find(const std::string& key) override;
  void Keep(const std::string& key, PackedBytes packed) override;

  const PackedMaker& maker() const { return maker_; }
  // Number of entries, and their bytes.
  struct Count {
    int64_t entries = 0, bytes = 0;
  };
  Count found() const;
  Count packed() const;
  // Returns the errors found in entries, one line each.
  std::vector<std::string> notes() const;

  // The content of a file of packed weights.
  class Content {
   public:
    Content(PackedMaker maker, std::map<std::string, PackedBytes> entries);
    // Returns the number of bytes that Write writes.
    uint64_t size() const { return PackedWeightsSize(maker_, pieces_); }
    absl::Status Write(ByteSink* sink) const { return WritePackedWeights(maker_, pieces_, sink); }

   private:
    PackedMaker maker_;
    std::map<std::string, PackedBytes> entries_;
    std::vector<PackedPiece> pieces_;  // Views of the entries, which keep their addresses when this object is moved.
  };
  // Returns the entries that were packed, and those that were found and are in use. Unused entries of the file (for
  // other shapes) are kept while their size is at most three times that of the used ones; they are read and checked.
  Content ToWrite() const;

 private:
  struct Source {
    std::shared_ptr<const PackedWeightsFile> file;
    PackedTrust trust;
  };

  const PackedMaker maker_;
  std::vector<Source> sources_;
  mutable std::mutex mutex_;
  std::map<std::string, PackedBytes> found_, packed_;
  std::vector<std::string> notes_;
};

// Describes how the maker differs; empty if it does not.
std::string DifferenceOf(const PackedMaker& found, const PackedMaker& expected);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_WEIGHT_CACHE_H_
