// Constants all of whose elements are one number, and what a pass may conclude from them.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_UNIFORM_CONSTANT_H_
#define PERMAFROST_TRANSFORMS_REWRITES_UNIFORM_CONSTANT_H_

#include <optional>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// The number that every element of the tensor is, for the real types from half to double and for integers; nothing for
// an empty tensor, for differing elements and for other types. O(elements), but stops at the first that differs.
std::optional<double> UniformValue(const Tensor& tensor);

// The same of a tensor that is a Const, directly or through Identity; nothing for one that is not constant.
std::optional<double> UniformConstant(TensorRef ref);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_UNIFORM_CONSTANT_H_
