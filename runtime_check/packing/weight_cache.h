// Weights that a delegate has packed, kept from one run to the next: in a package beside the model, or in a folder.
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

// How much an entry is trusted before it is used.
enum class PackedTrust {
  kAsTheModel,  // It lies in the model's own file: like the other weights there it is taken as it is.
  kChecked,     // Every byte is read once and compared with its hash.
};

class WeightCache final : public PackedWeights {
 public:
  explicit WeightCache(PackedMaker maker) : maker_(std::move(maker)) {}

  // Looks for entries there too. REQUIRES: before the first Find.
  void Use(std::shared_ptr<const PackedWeightsFile> file, PackedTrust trust) { sources_.push_back({file, trust}); }

  std::optional<PackedBytes> Find(const std::string& key) override;
  void Keep(const std::string& key, PackedBytes packed) override;

  const PackedMaker& maker() const { return maker_; }
  // Of entries, and bytes of them.
  struct Count {
    int64_t entries = 0, bytes = 0;
  };
  Count found() const;
  Count packed() const;
  // What was wrong with entries, a line each.
  std::vector<std::string> notes() const;

  // A file of weights before it is written.
  class Content {
   public:
    Content(PackedMaker maker, std::map<std::string, PackedBytes> entries);
    // Bytes that Write writes.
    uint64_t size() const { return PackedWeightsSize(maker_, pieces_); }
    absl::Status Write(ByteSink* sink) const { return WritePackedWeights(maker_, pieces_, sink); }

   private:
    PackedMaker maker_;
    std::map<std::string, PackedBytes> entries_;
    std::vector<PackedPiece> pieces_;  // Views of the entries, which stay where they are when this is moved.
  };
  // What was packed, and what was found and is in use. Entries of the file that nobody asked for, those of other
  // shapes, stay as long as they are no more than three times as many bytes. Reads and checks these.
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

// What of the maker is another, or nothing.
std::string DifferenceOf(const PackedMaker& found, const PackedMaker& expected);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_WEIGHT_CACHE_H_
