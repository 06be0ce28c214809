// As Abseil's: texts with unprintable bytes as a literal of C spells them.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

// Bytes from 128 on stay as they are.
std::string Utf8SafeCEscape(std::string_view text);
std::string CHexEscape(std::string_view text);

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_ESCAPING_H_
