// Fixed-point arithmetic of quantised operators, bit for bit that of LiteRT's reference kernels.
//
// A tensor of codes represents real = scale * (code - zero_point). An operator computes with integers and rescales its
// result by a fixed-point multiplier. Kernel sets of LiteRT round that product differently, so Rounding is a property
// of each operator. The headers of families (integer_convolution.h, integer_elementwise.h, ...) have one class for each
// operator:
//
//   Make(...)     checks scales, zero points and sizes, and computes multipliers and tables. Called once, in Prepare.
//                 It rejects any parameters for which Compute could overflow or read outside of its operands.
//   Compute(...)  computes a range of rows or elements, so that the caller can divide the work among threads. It
//                 allocates nothing; scratch_size() bytes for each thread come from the caller.
//
// A made object is immutable and may be used by any number of threads.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ARITHMETIC_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ARITHMETIC_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace permafrost {

// Storage of codes. Four-bit codes are unpacked to kInt8.
enum class CodeType : uint8_t { kInt8, kUint8, kInt16, kInt32 };

// An inclusive range of codes.
struct CodeRange {
  int32_t low, high;

  int32_t Clamp(int64_t code) const { return static_cast<int32_t>(std::clamp<int64_t>(code, low, high)); }
};

// The codes that a type can store.
CodeRange RangeOf(CodeType type);
int64_t BytesOf(CodeType type);
const char* NameOf(CodeType type);

// Type, scale and zero point of a tensor with one scale.
struct Affine {
  CodeType type = CodeType::kInt8;
  float scale = 0;
  int32_t zero_point = 0;
};

// Returns InvalidArgument unless the scale is positive and finite and the zero point is a code of the type. `tensor`
// names the operand in the message: "input", "filter", "output".
absl::Status CheckAffine(const Affine& affine, absl::string_view tensor);

// Returns InvalidArgument unless there are 1 or `channels` scales, each positive and finite.
absl::Status CheckScales(absl::Span<const float> scales, int64_t channels, absl::string_view tensor);

// Returns InvalidArgument if a factor is negative or the product exceeds 2^40 elements, so that offsets do not
// overflow.
absl::Status CheckNumElements(absl::Span<const int64_t> factors);

// Rounds the size of a part of scratch memory up to whole cache lines.
inline int64_t AlignScratch(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Rounding of an accumulator's product with a scale.
enum class Rounding : uint8_t {
  kTwice,  // Doubled high product rounded half away from zero, then a shift rounded half away from zero.
  kOnce,   // One rounding, halves up: the optimised kernels of LiteRT.
  kExact,  // Product with the scale in double precision, halves away from zero: reference FULLY_CONNECTED.
};

// Clamp that an operator applies to its own output.
enum class FusedActivation : uint8_t { kNone, kRelu, kReluN1To1, kRelu6 };

// Returns the codes that remain after the activation: zero_point + round(limit / scale), computed in float.
// REQUIRES: `output` passes CheckAffine.
CodeRange ActivationRange(FusedActivation activation, const Affine& output);

// Returns x rounded to the nearest integer, halves away from zero, limited to +-2^62. NaN becomes 0.
int64_t RoundAway(double x);

// A real factor multiplier / 2^31 * 2^shift. Multipliers of positive factors are in [2^30, 2^31).
struct FixedMultiplier {
  int32_t multiplier = 0;
  int32_t shift = 0;
};

// Returns the nearest multiplier. Factors below 2^-32 become 0; factors from 2^31 on have a shift above 30, which
// CheckMultiplier rejects. REQUIRES: the factor is finite.
FixedMultiplier QuantizeMultiplier(double factor);

// Returns InvalidArgument if the shift is above `max_shift` (at most 30): the factor is too large for the operator.
absl::Status CheckMultiplier(const FixedMultiplier& multiplier, absl::string_view factor, int max_shift = 30);

// Additions and shifts that wrap around, as those of the machine do.
inline int32_t WrapAdd(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
inline int32_t WrapSubtract(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
inline int32_t WrapMultiply(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
inline int32_t WrapShiftLeft(int32_t x, int shift) { return static_cast<int32_t>(static_cast<uint32_t>(x) << shift); }

// Returns a * b / 2^31, rounded half away from zero and saturated.
inline int32_t DoublingHighMultiply(int32_t a, int32_t b) {
  const int64_t product = static_cast<int64_t>(a) * b;
  // Halves away from zero are halves up, less one unit for negative products; the division truncates.
  const int64_t rounded = (product + (product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30))) / (int64_t{1} << 31);
  return static_cast<int32_t>(std::min<int64_t>(rounded, std::numeric_limits<int32_t>::max()));
}

// Returns x / 2^exponent, rounded half away from zero. REQUIRES: 0 <= exponent <= 31.
inline int32_t RoundingShiftRight(int32_t x, int exponent) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t remainder = x & mask;
  return (x >> exponent) + (remainder > (mask >> 1) + (x < 0 ? 1 : 0) ? 1 : 0);
}

// Returns x * multiplier, rounded twice. Shifts to the left wrap around.
inline int32_t MultiplyTwice(int32_t x, FixedMultiplier m) {
  return RoundingShiftRight(DoublingHighMultiply(WrapShiftLeft(x, std::max(m.shift, 0)), m.multiplier),
                            std::max(-m.shift, 0));
}

// Returns x * multiplier, rounded once, halves up, and saturated to the range of int32_t.
inline int32_t MultiplyOnce(int32_t x, FixedMultiplier m) {
  const int total = 31 - m.shift;
  const int64_t product = static_cast<int64_t>(x) * m.multiplier;
  const int64_t rounded = (product + (int64_t{1} << (total - 1))) >> total;
  return static_cast<int32_t>(
      std::clamp<int64_t>(rounded, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

// Returns x * multiplier for a 64-bit sum: the multiplier is reduced to 16 bits, rounded once, halves up. Products
// wrap around beyond 64 bits, which no sum of fewer than 2^24 products of codes reaches.
inline int64_t MultiplyWide(int64_t x, FixedMultiplier m) {
  const int64_t reduced = m.multiplier < 0x7FFF0000 ? (int64_t{m.multiplier} + (1 << 15)) >> 16 : 0x7FFF;
  const int total = 15 - m.shift;
  const auto product = static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(reduced));
  const auto rounded = static_cast<int64_t>(static_cast<uint64_t>(product) + (uint64_t{1} << (total - 1)));
  return rounded >> total;
}

// Functions of fixed-point numbers. Names such as Q5.26 count integer bits and fraction bits besides the sign.

// e^x for x <= 0 in Q5.26, as Q0.31.
int32_t ExpOfNegative(int32_t x);
// 1 / (1 + x) for x in [0, 1) in Q0.31, as Q0.31.
int32_t OneOverOnePlus(int32_t x);
// The natural logarithm of x >= 1 in Q12.19, as Q5.26.
int32_t LogOfAtLeastOne(int32_t x);
// tanh(x) and 1 / (1 + e^-x) for x with the given number of integer bits (0 to 6) in 16 bits, as Q0.15.
int16_t TanhOf(int16_t x, int integer_bits);
int16_t LogisticOf(int16_t x);  // x in Q3.12.
// 1 / sqrt(x) as a multiplier for x >= 0. x <= 1 gives the largest multiplier.
FixedMultiplier InverseSquareRoot(int32_t x);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_ARITHMETIC_H_
