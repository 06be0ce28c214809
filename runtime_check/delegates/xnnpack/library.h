// Initialization of XNNPACK, accounting of its memory, and conversion of its errors.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_

#include <xnnpack.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {
namespace xnnpack {

// Loads and initializes XNNPACK; further calls have no effect. Thread-safe. Returns NotFound if the library is not
// installed, FailedPrecondition if it cannot be loaded, Unimplemented on a processor that it does not support.
absl::Status InitializeLibrary();

// Converts a status of the library; an error message names `call`.
absl::Status ToStatus(enum xnn_status status, absl::string_view call);

// Returns the bytes that the library has allocated on this thread, less those that it has freed. The value is constant
// if other code of the process has initialized the library first, with another allocator.
int64_t LibraryBytes();

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_
