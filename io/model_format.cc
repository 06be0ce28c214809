// Implements the checks that formats share.
#include "io/model_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace permafrost {

bool LooksLikeText(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, ModelSource::kEndBytes);
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v') || byte == 0x7f;
  });
}

bool LooksLikeJson(absl::string_view bytes) {
  return LooksLikeText(bytes) && absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes), "{");
}

}  // namespace permafrost
