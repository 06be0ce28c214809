// As Abseil's: texts to numbers. False, and an undefined number, for what is none or does not fit.
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

// For signed integers and unsigned ones of fewer than 64 bits.
template <typename Int>
bool SimpleAtoi(std::string_view text, Int* value) {
  static_assert(std::numeric_limits<Int>::digits <= 63, "needs more than int64");
  int64_t wide;
  const bool ok = internal::ParseInteger(text, std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max(), &wide);
  *value = static_cast<Int>(ok ? wide : 0);
  return ok;
}

// What the schemas need: a decimal number of up to 15 digits and an exponent of at most 22 either way, which one
// operation in double gives exactly rounded.
bool SimpleAtof(std::string_view text, float* value);

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_STRINGS_NUMBERS_H_
