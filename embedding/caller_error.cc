// Implements the conversion of statuses to numbers and lines of text.
#include "embedding/caller_error.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/dtype.h"

namespace permafrost {

void CopyLine(absl::string_view text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  for (size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    to[i] = byte < 0x20 || byte == 0x7f ? ' ' : text[i];
  }
  to[length] = '\0';
}

pf_status Tell(const absl::Status& status, CallerError error) {
  CopyLine(status.message(), error.text, error.size);
  return static_cast<pf_status>(status.code());
}

absl::Status CheckGiven(const void* pointer, absl::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found NULL, expected '", name, "'"));
}

}  // namespace permafrost

int32_t pf_version(void) { return PF_VERSION_MAJOR * 1000 + PF_VERSION_MINOR; }

const char* pf_status_name(pf_status status) {
  switch (status) {
    case PF_OK:
      return "ok";
    case PF_CANCELLED:
      return "cancelled";
    case PF_INVALID_ARGUMENT:
      return "invalid argument";
    case PF_NOT_FOUND:
      return "not found";
    case PF_PERMISSION_DENIED:
      return "permission denied";
    case PF_RESOURCE_EXHAUSTED:
      return "resource exhausted";
    case PF_FAILED_PRECONDITION:
      return "failed precondition";
    case PF_UNIMPLEMENTED:
      return "unimplemented";
    case PF_INTERNAL:
      return "internal";
    case PF_UNAVAILABLE:
      return "unavailable";
    case PF_DATA_LOSS:
      return "data loss";
    default:
      return "unknown";
  }
}

size_t pf_dtype_size(int32_t dtype) {
  return dtype == PF_STRING ? sizeof(pf_string) : permafrost::SizeOf(static_cast<permafrost::DType>(dtype));
}
