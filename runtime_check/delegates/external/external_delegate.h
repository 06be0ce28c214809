// Delegates loaded from shared libraries through the C interface of permafrost_delegate.h.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {

// Loads a delegate. The library stays loaded while the delegate or code compiled by it exists. Errors name the path:
//   NotFound            the file does not exist
//   InvalidArgument     it is not a shared library, or does not export permafrost_delegate_entry
//   FailedPrecondition  it is built for another major version of the interface
//   Internal            its entry fails, or omits a required function
absl::StatusOr<std::shared_ptr<const Delegate>> LoadExternalDelegate(const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_H_
