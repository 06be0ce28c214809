// Replacement for Abseil's conversions from text to numbers. They return false, with an unspecified number, for
// malformed or out-of-range text.
#ifndef PERMAFROST_SELECTIVE_ABSL_STRINGS_NUMBERS_H_
#define PERMAFROST_SELECTIVE_ABSL_STRINGS_NUMBERS_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"

namespace absl {
inline namespace selective {

namespace internal {
bool ParseInteger(std::string_view text, int64_t least, int64_t most, int64_t* value);
}  // namespace internal

// Parses a signed integer, or an unsigned integer of less than 64 bits.
template <typename Int>
bool SimpleAtoi(std::string_view text, Int* value) {
  static_assert(std::numeric_limits<Int>::digits <= 63, "needs more than int64");
  int64_t wide;
  const bool ok = internal::ParseInteger(text, std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max(), &wide);
  *value = static_cast<Int>(ok ? wide : 0);
  return ok;
}

// Parses a decimal number of up to 15 significant digits with an exponent of at most 22 in magnitude, which suffices
// for op schemas. One operation in double then rounds correctly.
bool SimpleAtof(std::string_view text, float* value);

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_NUMBERS_H_
