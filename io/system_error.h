// Converts errors of system calls to statuses.
#ifndef PERMAFROST_IO_SYSTEM_ERROR_H_
#define PERMAFROST_IO_SYSTEM_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Returns `cannot <action> '<path>': <text of the error number>`, with the matching status code.
absl::Status SystemError(absl::string_view action, const std::string& path, int error_number);

}  // namespace permafrost

#endif  // PERMAFROST_IO_SYSTEM_ERROR_H_
