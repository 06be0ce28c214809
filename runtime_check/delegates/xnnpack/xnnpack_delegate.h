// The delegate that runs float subgraphs of vision models (NHWC) with XNNPACK.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {

// Creates the delegate. Returns Unimplemented on a processor that XNNPACK does not support.
//
// XNNPACK's kernels convert NaN to a number where they clamp. Therefore a partition with such a kernel accepts only
// finite numbers: its Run returns InvalidArgument if an input has NaN or infinity. Nodes that produce NaN from finite
// numbers are rejected at compile time. A sum that overflows inside the partition is not detected.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeXnnpackDelegate();

// Returns the path of XNNPACK, empty if it is not loaded.
std::string XnnpackLibraryPath();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_
