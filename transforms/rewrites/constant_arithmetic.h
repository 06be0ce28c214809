// Arithmetic on float constants, for passes that combine what several nodes do into one.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"

namespace permafrost {

enum class Operation { kSum, kProduct };

// a + b or a * b element by element, under numpy's broadcasting. FailedPrecondition says why the result would not do:
// the shapes do not fit, it would be larger than both, or an element overflows, underflows or is no number.
absl::StatusOr<Tensor> Combined(const Tensor& a, Operation operation, const Tensor& b);

// f(a) element by element, where f gives 0 only for what is 0 to it. The same refusals.
absl::StatusOr<Tensor> Mapped(const Tensor& a, absl::FunctionRef<float(float)> f);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONSTANT_ARITHMETIC_H_
