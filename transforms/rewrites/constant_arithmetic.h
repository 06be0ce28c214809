// Arithmetic on float constants, for passes that combine several nodes into one.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"

namespace permafrost {

enum class Operation { kSum, kProduct };

// Returns a + b or a * b element by element, with numpy's broadcasting. Returns FailedPrecondition with the reason if
// the shapes do not broadcast, the result would be larger than both operands, or an element overflows, underflows or is
// NaN.
absl::StatusOr<Tensor> Combined(const Tensor& a, Operation operation, const Tensor& b);

// Returns f(a) element by element, with the same errors as Combined(). REQUIRES: f returns 0 only for an exact result
// of 0, not on underflow.
absl::StatusOr<Tensor> Mapped(const Tensor& a, absl::FunctionRef<float(float)> f);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_
