// Reads the values of constants. "Constant" means a Const that is read directly or through Identity nodes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns the common value of all elements, for integers and the real types from half to double. Returns nothing for an
// empty tensor, differing elements or other types. O(elements), but stops at the first element that differs.
std::optional<double> UniformValue(const Tensor& tensor);

// Returns UniformValue() of a constant; nothing for a tensor that is not constant.
std::optional<double> UniformConstant(TensorRef ref);

// Returns the elements of a constant of int32 or int64; nothing otherwise.
std::optional<std::vector<int64_t>> IntegerConstant(TensorRef ref);

// Returns the elements of a constant vector of int32 or int64; nothing otherwise.
std::optional<std::vector<int64_t>> IntegerVectorConstant(TensorRef ref);

// Returns the value of a float constant; nothing otherwise.
std::optional<Tensor> FloatConstant(TensorRef ref);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_VALUES_H_
