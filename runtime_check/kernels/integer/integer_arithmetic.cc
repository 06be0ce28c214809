// Implements fixed-point arithmetic of quantised operators. Functions of fixed-point numbers follow gemmlowp's
// definitions, which LiteRT's kernels use; constants are those numbers in the Q format that is named beside them.
#include "runtime_check/kernels/integer/integer_arithmetic.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// Fixed-point numbers in 16 or 32 bits. A constant is given for 32 bits and rounded for 16.
template <typename T>
struct Fixed {
  static constexpr int kBits = sizeof(T) * 8;
  static constexpr int64_t kLow = std::numeric_limits<T>::min();
  static constexpr int64_t kHigh = std::numeric_limits<T>::max();

  static constexpr T Constant(int32_t value) {
    const int shift = 32 - kBits;
    return shift == 0 ? static_cast<T>(value) : static_cast<T>((value + (int64_t{1} << (shift - 1))) >> shift);
  }
  static T Saturate(int64_t x) { return static_cast<T>(std::clamp(x, kLow, kHigh)); }
  static T Wrap(int64_t x) { return static_cast<T>(x); }
  // Adds; only 16-bit numbers saturate.
  static T Add(T a, T b) { return kBits == 16 ? Saturate(int64_t{a} + b) : Wrap(int64_t{a} + b); }
  static T Multiply(T a, T b) {
    const int64_t product = int64_t{a} * b, half = int64_t{1} << (kBits - 2);
    return Saturate((product + (product >= 0 ? half : 1 - half)) / (int64_t{1} << (kBits - 1)));
  }
  static T ShiftRight(T x, int exponent) { return static_cast<T>(RoundingShiftRight(x, exponent)); }
  static T ShiftLeft(T x, int exponent) { return Saturate(int64_t{x} * (int64_t{1} << exponent)); }
  static T HalfSum(T a, T b) {
    const int64_t sum = int64_t{a} + b;
    return static_cast<T>((sum + (sum >= 0 ? 1 : -1)) / 2);
  }

  // e^a for a in [-1/4, 0) in Q0: the Taylor series around -1/8.
  static T ExpOfQuarter(T a) {
    constexpr int32_t kExpOfMinusEighth = 1895147668, kThird = 715827883;  // Q0.
    const T first = Constant(kExpOfMinusEighth);
    const T x = Wrap(int64_t{a} + (int64_t{1} << (kBits - 4)));
    const T x2 = Multiply(x, x), x3 = Multiply(x2, x), x4 = Multiply(x2, x2);
    const T third = Multiply(Wrap(int64_t{ShiftRight(x4, 2)} + x3), Constant(kThird));
    const T rest = ShiftRight(Wrap(int64_t{third} + x2), 1);
    return Add(first, Multiply(first, Wrap(int64_t{x} + rest)));
  }

  // e^a for a <= 0 with `integer_bits`, as Q0.
  static T ExpOfNegative(T a, int integer_bits) {
    // e^-(2^(i - 2)) in Q0.
    constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    if (a == 0) return static_cast<T>(kHigh);
    const int fraction_bits = kBits - 1 - integer_bits;
    if (integer_bits > 5 && int64_t{a} < -(int64_t{1} << (fraction_bits + 5))) return 0;
    const int64_t quarter = int64_t{1} << (fraction_bits - 2);
    const int64_t part = (a & (quarter - 1)) - quarter;
    T result = ExpOfQuarter(ShiftLeft(static_cast<T>(part), integer_bits));
    const int64_t rest = part - a;
    for (int i = 0; i < 7; ++i) {
      const int exponent = i - 2;
      if (integer_bits > exponent && (rest & (int64_t{1} << (fraction_bits + exponent))) != 0) {
        result = Multiply(result, Constant(kPowers[i]));
      }
    }
    return result;
  }

  // 2 / (1 + a) in Q2, for a in [0, 1) in Q0: three Newton steps.
  static T TwoOverOnePlus(T a) {
    constexpr int32_t k48Over17 = 1515870810, kMinus32Over17 = -1010580540;  // Q2.
    const T half_denominator = HalfSum(a, static_cast<T>(kHigh));
    T x = Wrap(int64_t{Constant(k48Over17)} + Multiply(half_denominator, Constant(kMinus32Over17)));
    for (int i = 0; i < 3; ++i) {
      const T error = Wrap((int64_t{1} << (kBits - 3)) - Multiply(half_denominator, x));
      x = Wrap(int64_t{x} + ShiftLeft(Multiply(x, error), 2));
    }
    return x;
  }
};

}  // namespace

CodeRange RangeOf(CodeType type) {
  switch (type) {
    case CodeType::kInt8:
      return {-128, 127};
    case CodeType::kUint8:
      return {0, 255};
    case CodeType::kInt16:
      return {-32768, 32767};
    case CodeType::kInt32:
      break;
  }
  return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
}

int64_t BytesOf(CodeType type) { return type == CodeType::kInt32 ? 4 : type == CodeType::kInt16 ? 2 : 1; }

const char* NameOf(CodeType type) {
  constexpr const char* kNames[] = {"int8", "uint8", "int16", "int32"};
  return kNames[static_cast<int>(type)];
}

absl::Status CheckAffine(const Affine& affine, absl::string_view tensor) {
  PF_RETURN_IF_ERROR(CheckScales({&affine.scale, 1}, 1, tensor));
  const CodeRange range = RangeOf(affine.type);
  if (affine.zero_point < range.low || affine.zero_point > range.high) {
    return absl::InvalidArgumentError(absl::StrCat(tensor, ": zero point ", affine.zero_point, " is not in [",
                                                   range.low, ", ", range.high, "], the range of ",
                                                   NameOf(affine.type)));
  }
  return absl::OkStatus();
}

absl::Status CheckScales(absl::Span<const float> scales, int64_t channels, absl::string_view tensor) {
  const auto count = static_cast<int64_t>(scales.size());
  if (count != 1 && count != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor, ": has ", count, " scales, expected 1 or ", channels, ", one for each channel"));
  }
  for (const float scale : scales) {
    if (!(scale > 0) || std::isinf(scale)) {
      return absl::InvalidArgumentError(absl::StrCat(tensor, ": scale ", scale, " is not positive and finite"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNumElements(absl::Span<const int64_t> factors) {
  constexpr int64_t kMostElements = int64_t{1} << 40;
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product) ||
        product > kMostElements) {
      return absl::InvalidArgumentError("an operand is negative in size or too large");
    }
  }
  return absl::OkStatus();
}

CodeRange ActivationRange(FusedActivation activation, const Affine& output) {
  CodeRange range = RangeOf(output.type);
  const auto code = [&](float limit) {
    const int64_t rounded = RoundAway(static_cast<double>(limit / output.scale));
    return static_cast<int32_t>(std::clamp<int64_t>(
        std::clamp<int64_t>(rounded, INT32_MIN, INT32_MAX) + output.zero_point, range.low, range.high));
  };
  const CodeRange all = range;
  switch (activation) {
    case FusedActivation::kNone:
      break;
    case FusedActivation::kRelu:
      range.low = code(0.f);
      break;
    case FusedActivation::kReluN1To1:
      range = {code(-1.f), code(1.f)};
      break;
    case FusedActivation::kRelu6:
      range = {code(0.f), code(6.f)};
      break;
  }
  return {std::max(range.low, all.low), std::min(range.high, all.high)};
}

int64_t RoundAway(double x) {
  constexpr double kLimit = 4611686018427387904.;  // 2^62, so that a zero point can be added.
  if (std::isnan(x)) return 0;
  return static_cast<int64_t>(std::clamp(std::round(x), -kLimit, kLimit));
}

FixedMultiplier QuantizeMultiplier(double factor) {
  if (factor == 0) return {};
  int shift = 0;
  const double fraction = std::frexp(factor, &shift);
  auto multiplier = static_cast<int64_t>(std::round(fraction * (int64_t{1} << 31)));
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  return {static_cast<int32_t>(multiplier), shift};
}

absl::Status CheckMultiplier(const FixedMultiplier& multiplier, absl::string_view factor, int max_shift) {
  if (multiplier.shift <= max_shift) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(factor, " is 2^", multiplier.shift - 1, " or more, expected less than 2^", max_shift));
}

int32_t ExpOfNegative(int32_t x) { return Fixed<int32_t>::ExpOfNegative(x, 5); }

int32_t OneOverOnePlus(int32_t x) { return Fixed<int32_t>::ShiftLeft(Fixed<int32_t>::TwoOverOnePlus(x), 1); }

int32_t LogOfAtLeastOne(int32_t x) {
  using F = Fixed<int32_t>;
  constexpr int kInputBits = 12, kSumBits = 6, kOutputBits = 5;  // Integer bits.
  // Q0: log(2), 2^(-1/4), 2^(-1/2), and the coefficients of a rational approximation around 2^(-1/4).
  constexpr int32_t kLog2 = 1488522236, kFourthRootOfHalf = 1805811301, kRootOfHalf = 1518500250;
  constexpr int32_t kAlphaN = 117049297, kAlphaD = 127690142, kAlphaI = 1057819769, kAlphaF = 638450708;
  constexpr int32_t kQuarter = 1 << (31 - kSumBits - 2);
  x = std::max(x, 1);
  // x = r * 2^e, with r near 2^(-1/4), in two ways: normalised itself, or after multiplication with 2^(-1/2).
  const int headroom_a = __builtin_clz(static_cast<uint32_t>(x));
  const int32_t r_a = F::ShiftLeft(F::Multiply(F::ShiftLeft(x, headroom_a - 1), kRootOfHalf), 1);
  const int32_t exponent_a = F::Saturate(int64_t{F::ShiftLeft(kInputBits - headroom_a, 31 - kSumBits)} + kQuarter);
  const int32_t z_b = F::Multiply(x, kRootOfHalf);
  const int headroom_b = z_b == 0 ? 31 : __builtin_clz(static_cast<uint32_t>(z_b)) - 1;
  const int32_t r_b = F::ShiftLeft(x, headroom_b);
  const int32_t exponent_b = F::Saturate(int64_t{F::ShiftLeft(kInputBits - headroom_b, 31 - kSumBits)} - kQuarter);
  const int32_t r = std::min(r_a, r_b), exponent = std::max(exponent_a, exponent_b);
  const int32_t p = F::HalfSum(r, kFourthRootOfHalf);
  const int32_t q = WrapMultiply(WrapSubtract(r, kFourthRootOfHalf), 2);
  const int32_t square = F::Multiply(q, q);
  const int32_t numerator = WrapAdd(F::Multiply(q, r), F::Multiply(F::Multiply(q, square), kAlphaN));
  const int32_t denominator =
      WrapAdd(F::Multiply(p, WrapAdd(WrapAdd(kAlphaI, q), F::Multiply(kAlphaD, square))), F::Multiply(kAlphaF, q));
  const int32_t reciprocal = OneOverOnePlus(denominator);
  const int32_t sum =
      WrapAdd(F::Multiply(exponent, kLog2), F::Multiply(F::ShiftRight(numerator, kSumBits), reciprocal));
  return F::ShiftLeft(sum, kSumBits - kOutputBits);
}

int16_t TanhOf(int16_t x, int integer_bits) {
  using F = Fixed<int16_t>;
  if (x == 0) return 0;
  const auto negative = static_cast<int16_t>(x < 0 ? x : -x);
  // (1 - e) / (1 + e) = 2 / (1 + e) - 1, with e = exp(2 x).
  const int16_t e = F::ExpOfNegative(negative, integer_bits + 1);
  const int16_t y = F::ShiftLeft(F::Wrap(F::TwoOverOnePlus(e) - (1 << 13)), 2);
  return static_cast<int16_t>(x < 0 ? -y : y);
}

int16_t LogisticOf(int16_t x) {
  using F = Fixed<int16_t>;
  if (x == 0) return 1 << 14;
  const auto negative = static_cast<int16_t>(x < 0 ? x : -x);
  const int16_t y = F::ShiftLeft(F::TwoOverOnePlus(F::ExpOfNegative(negative, 3)), 1);
  return static_cast<int16_t>(x > 0 ? y : F::kHigh - y);
}

FixedMultiplier InverseSquareRoot(int32_t x) {
  using F = Fixed<int32_t>;
  if (x <= 1) return {std::numeric_limits<int32_t>::max(), 0};
  int right_shift = 11;
  while (x >= 1 << 29) {
    x /= 4;
    ++right_shift;
  }
  const int pairs = (__builtin_clz(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  right_shift -= pairs;
  x <<= 2 * pairs;
  // Newton's iteration in Q3, from 1.
  const int32_t half_input = F::ShiftRight(x >> 1, 1);
  constexpr int32_t kThreeHalves = 3 << 27, kRootOfHalf = 1518500250;  // Q3; Q0.
  int32_t root = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = F::ShiftLeft(F::Multiply(F::Multiply(root, root), root), 6);
    root = F::ShiftLeft(WrapSubtract(F::Multiply(kThreeHalves, root), F::Multiply(half_input, cube)), 3);
  }
  root = F::Multiply(root, kRootOfHalf);
  if (right_shift < 0) {
    root = WrapShiftLeft(root, -right_shift);
    right_shift = 0;
  }
  return {root, -right_shift};
}

}  // namespace permafrost
