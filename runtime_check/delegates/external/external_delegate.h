// Delegates from shared libraries, through the C interface of permafrost_delegate.h.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {

// The library stays loaded as long as the delegate or something that it compiled lives. Errors name the path:
//   NotFound            there is no such file
//   InvalidArgument     it is no shared library, or exports no permafrost_delegate_entry
//   FailedPrecondition  it is built for another major version of the interface
//   Internal            its entry fails, or leaves out a function that is required
absl::StatusOr<std::shared_ptr<const Delegate>> LoadExternalDelegate(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_
