// Reads lists of names of the C interface.
#include "absl/strings/str_cat.h"
#include "embedding/session_interface.h"

namespace permafrost {

absl::StatusOr<std::vector<std::string>> GivenNames(const char* const* names, size_t count, absl::string_view kind) {
  std::vector<std::string> given;
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return absl::InvalidArgumentError(absl::StrCat("the name of ", kind, " ", i, " is NULL"));
    given.emplace_back(names[i]);
  }
  return given;
}

}  // namespace permafrost
