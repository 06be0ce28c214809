// Packed weights that are kept in memory, for tests.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_MEMORY_WEIGHTS_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_MEMORY_WEIGHTS_H_

#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "graph/tensor.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {

// Stores all weights in memory, at multiples of 64 bytes like a mapped file, or at other addresses.
class MemoryWeights final : public PackedWeights {
 public:
  std::optional<PackedBytes> Find(const std::string& key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      ++num_missing;
      return std::nullopt;
    }
    ++num_found;
    char* data = nullptr;
    const int64_t size = static_cast<int64_t>(found->second.size());
    Tensor tensor = *Tensor::Allocate(DType::kUint8, {size + misalignment}, &data);
    if (size > 0) std::memcpy(data + misalignment, found->second.data(), found->second.size());
    return PackedBytes{absl::string_view(data + misalignment, found->second.size()), tensor.owner()};
  }
  void Keep(const std::string& key, PackedBytes packed) override {
    ++num_kept;
    entries_[key] = std::string(packed.bytes);
  }

  std::map<std::string, std::string>& entries() { return entries_; }
  int num_found = 0, num_missing = 0, num_kept = 0, misalignment = 0;

 private:
  std::map<std::string, std::string> entries_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_MEMORY_WEIGHTS_H_
