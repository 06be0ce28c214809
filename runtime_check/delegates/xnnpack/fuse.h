// Fusion of operations that the library can compute as one.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_

#include <vector>

#include "runtime_check/delegate.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

// Fuses operations. Runs in time linear in the number of operations. The patterns:
//   relu(x) + slope * negative part of x, in the forms that exporters write        =>   prelu(x)
//   convolution or matrix product, + one constant per channel                      =>   its bias
//   convolution of an image, + a large constant per channel                        =>   an addition in place
//   Pad of rows and columns with 0, convolution without padding                    =>   the convolution's padding
//   operation that the library can clamp, clamp (Relu, Relu6, Maximum, Minimum)    =>   its bounds
// A tensor with other readers is kept, and so is the operation that produces it.
void Fuse(const Partition& partition, std::vector<Operation>* operations);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_
