// Where a delegate finds the weights of a model as it packed them before, and leaves what it packs now.
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

// A build that does not packs anew each time.
inline constexpr bool kKeepsPackedWeights = selection::kHoldsPackedWeights;

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
  // Nothing where nothing is kept under the key, or what is kept is damaged. The memory may be mapped for reading
  // alone.
  virtual std::optional<PackedBytes> Find(const std::string& key) = 0;
  // The bytes must not change any more.
  virtual void Keep(const std::string& key, PackedBytes packed) = 0;
};

struct NoPackedWeights {
  PackedWeights* get() const { return nullptr; }
  operator std::shared_ptr<PackedWeights>() const { return nullptr; }  // NOLINT: meant to convert.
};
using SharedPackedWeights = std::conditional_t<kKeepsPackedWeights, std::shared_ptr<PackedWeights>, NoPackedWeights>;

// The same, for the inputs of one node.
struct PackedInputs {
  PackedWeights* weights;
  // Names the value of input i in the model. Empty where it does not follow from the model alone.
  absl::FunctionRef<std::string(int)> value_name;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PACKED_WEIGHTS_H_
