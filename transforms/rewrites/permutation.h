// Permutations of dimensions, as used by Transpose: dimension i of the result is dimension order[i] of the input.
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
// Returns the permutation equivalent to Transpose by `first` and then by `second`. REQUIRES: equal sizes.
Permutation Composed(const Permutation& first, const Permutation& second);

// Returns the permutation of a Transpose, if it is constant and valid; otherwise nothing.
std::optional<Permutation> OrderOf(const Node& transpose);

// Returns the tensor with its dimensions permuted. Returns InvalidArgument unless the permutation has the rank of the
// tensor and the elements have a fixed size (not strings).
absl::StatusOr<Tensor> Transposed(const Tensor& tensor, const Permutation& order);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_PERMUTATION_H_
