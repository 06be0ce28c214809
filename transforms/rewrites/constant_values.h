// The values of constants, for passes that decide by them. "Constant" is a Const that is read directly or through
// Identity.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// The number that every element of the tensor is, for the real types from half to double and for integers; nothing for
// an empty tensor, for differing elements and for other types. O(elements), but stops at the first that differs.
std::optional<double> UniformValue(const Tensor& tensor);

// The same of a constant; nothing for a tensor that is none.
std::optional<double> UniformConstant(TensorRef ref);

// The elements of a constant of int32 or int64; nothing for anything else.
std::optional<std::vector<int64_t>> IntegerConstant(TensorRef ref);

// The same of a constant vector; nothing for one of another rank.
std::optional<std::vector<int64_t>> IntegerVectorConstant(TensorRef ref);

// The value of a float constant; nothing for anything else.
std::optional<Tensor> FloatConstant(TensorRef ref);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_
