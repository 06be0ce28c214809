// The library itself: made ready once, with its memory counted, and its answers in words.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_

#include <xnnpack.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {
namespace xnnpack {

// Makes XNNPACK ready for use; again and again has no further effect. Thread-safe. Unimplemented on a processor that it
// does not know.
absl::Status InitializeLibrary();

// OK for success; else what the library answered to `call`.
absl::Status ToStatus(enum xnn_status status, absl::string_view call);

// What the library allocated on this thread so far, less what it freed, in bytes. Constant when somebody else in the
// process made the library ready first, with an allocator of their own.
int64_t LibraryBytes();

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_LIBRARY_H_
