// Orders of dimensions, as Transpose takes them: dimension i of the result is dimension order[i] of the input.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_PERMUTATION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_PERMUTATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

using Permutation = std::vector<int32_t>;

bool IsIdentity(const Permutation& order);
Permutation Inverse(const Permutation& order);
// The one order that does what Transpose by `first` and then by `second` does. REQUIRES: equal sizes.
Permutation Composed(const Permutation& first, const Permutation& second);

// The order of a Transpose, when it is a constant and a permutation; else nothing.
std::optional<Permutation> OrderOf(const Node& transpose);

// The tensor with its dimensions in another order. Strings are not moved. InvalidArgument unless the order fits the
// rank and the elements have a fixed size.
absl::StatusOr<Tensor> Transposed(const Tensor& tensor, const Permutation& order);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_PERMUTATION_H_
