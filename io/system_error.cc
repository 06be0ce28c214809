// Implements the conversion of error numbers to statuses.
#include "io/system_error.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace {

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status SystemError(absl::string_view action, const std::string& path, int error_number) {
  char buffer[128];
  return absl::Status(CodeOf(error_number), absl::StrCat("cannot ", action, " '", path,
                                                         "': ", strerror_r(error_number, buffer, sizeof(buffer))));
}

}  // namespace permafrost
