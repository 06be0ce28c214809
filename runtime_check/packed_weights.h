// Where a delegate finds the weights of a model as it packed them before, and leaves what it packs now.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKED_WEIGHTS_H_
#define PERMAFROST_RUNTIME_CHECK_PACKED_WEIGHTS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/tensor.h"

namespace permafrost {

// Valid as long as `owner`, or a copy of it, lives.
struct PackedBytes {
  absl::string_view bytes;
  Owner owner;
};

// For one model, one delegate and one precision. A key says all on which the bytes depend beside those and the weights
// themselves. Thread-safe.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  // Nothing where nothing is kept under the key, or what is kept is damaged. The memory may be mapped for reading alone.
  virtual std::optional<PackedBytes> Find(const std::string& key) = 0;
  // The bytes must not change any more.
  virtual void Keep(const std::string& key, PackedBytes packed) = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKED_WEIGHTS_H_
