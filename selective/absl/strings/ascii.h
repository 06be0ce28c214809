// Replacement for Abseil's ASCII functions, which do not depend on the locale.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_ASCII_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_ASCII_H_

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

inline bool ascii_isdigit(unsigned char c) { return c >= '0' && c <= '9'; }
inline bool ascii_isupper(unsigned char c) { return c >= 'A' && c <= 'Z'; }
inline bool ascii_islower(unsigned char c) { return c >= 'a' && c <= 'z'; }
inline bool ascii_isalpha(unsigned char c) { return ascii_isupper(c) || ascii_islower(c); }
inline bool ascii_isalnum(unsigned char c) { return ascii_isalpha(c) || ascii_isdigit(c); }
inline bool ascii_isxdigit(unsigned char c) {
  return ascii_isdigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
inline bool ascii_isspace(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline char ascii_tolower(unsigned char c) { return static_cast<char>(ascii_isupper(c) ? c + 32 : c); }

inline std::string_view StripAsciiWhitespace(std::string_view text) {
  while (!text.empty() && ascii_isspace(text.front())) text.remove_prefix(1);
  while (!text.empty() && ascii_isspace(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_ASCII_H_
