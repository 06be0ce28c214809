// Which ops compute each element of their result from the elements at the same place.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_

#include "graph/ops/op.h"

namespace permafrost {

// One input, one output of its shape (Relu, Exp, Cast, Identity ...).
bool IsUnaryElementwise(Op op);
// Two inputs that broadcast, one output (AddV2, Mul, Maximum, Less ...).
bool IsBinaryElementwise(Op op);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ELEMENTWISE_OPS_H_
