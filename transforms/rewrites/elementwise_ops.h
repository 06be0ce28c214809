// Lists the elementwise ops: each element of the result depends only on the elements at the same place.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_

#include "graph/ops/op.h"

namespace permafrost {

// Returns true for ops with one input and one output of the same shape (Relu, Exp, Cast, Identity ...).
bool IsUnaryElementwise(Op op);
// Returns true for ops with two inputs that broadcast, and one output (AddV2, Mul, Maximum, Less ...).
bool IsBinaryElementwise(Op op);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_
