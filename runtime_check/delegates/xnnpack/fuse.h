// Joins operations that the library computes in one go.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_

#include <vector>

#include "runtime_check/delegate.h"
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

// Linear in operations:
//   relu(x) + slope * what is negative of x, in the ways that exporters write it   =>   prelu(x)
//   convolution or matrix product, + one constant per channel                      =>   its bias
//   Pad of rows and columns with 0, convolution without padding                    =>   the convolution's padding
//   whatever the library can clamp, clamp (Relu, Relu6, Maximum, Minimum)          =>   its bounds
// A tensor that somebody else reads stays as it is, and so does what is made of it.
void Fuse(const Partition& partition, std::vector<Operation>* operations);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_FUSE_H_
