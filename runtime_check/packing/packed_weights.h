// The interface of a cache of packed weights, which a delegate reads and fills.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_WEIGHTS_H_
#define PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_WEIGHTS_H_

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "graph/base/selection.h"
#include "graph/tensor.h"

namespace permafrost {

// False in builds that pack weights anew in each process.
inline constexpr bool kKeepsPackedWeights = selection::kHoldsPackedWeights;

// Bytes of packed weights; valid as long as `owner`, or a copy of it, lives.
struct PackedBytes {
  absl::string_view bytes;
  Owner owner;
};

// A cache for one model, one delegate and one precision. A key describes everything else that the bytes depend on,
// except the weights themselves. Thread-safe.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  // Returns the bytes under the key; empty if there are none or they are damaged. The memory may be mapped read-only.
  virtual std::optional<PackedBytes> Find(const std::string& key) = 0;
  // Stores the bytes, which must not change afterwards.
  virtual void Keep(const std::string& key, PackedBytes packed) = 0;
};

struct NoPackedWeights {
  PackedWeights* get() const { return nullptr; }
  operator std::shared_ptr<PackedWeights>() const { return nullptr; }  // NOLINT: implicit conversion is intended.
};
using SharedPackedWeights = std::conditional_t<kKeepsPackedWeights, std::shared_ptr<PackedWeights>, NoPackedWeights>;

// The cache for the inputs of one node.
struct PackedInputs {
  PackedWeights* weights;
  // Returns the name of the value of input i in the model. Empty if it does not depend on the model alone.
  absl::FunctionRef<std::string(int)> value_name;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_WEIGHTS_H_
