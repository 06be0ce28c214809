// The delegate that runs float subgraphs of vision models (NHWC) with XNNPACK.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {

// Unimplemented on a processor that XNNPACK does not know.
//
// XNNPACK's kernels turn NaN into a number where they clamp, so a partition that has one of these is for finite
// numbers: its Run gives InvalidArgument when an input has a NaN or an infinity, and nodes that make NaN of finite
// numbers are refused. A sum that overflows inside is not noticed.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeXnnpackDelegate();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H_
