// Replacement for Abseil's escaping: writes unprintable bytes as in a C literal.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

// Keeps bytes of 128 and above unchanged.
std::string Utf8SafeCEscape(std::string_view text);
std::string CHexEscape(std::string_view text);

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_
