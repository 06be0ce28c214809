// Implements elementwise operators on codes.
#include "runtime_check/kernels/integer/integer_elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/integer/integer_tables.h"

namespace permafrost {
namespace {

int32_t MultiplyBy(int32_t x, FixedMultiplier multiplier, Rounding rounding) {
  return rounding == Rounding::kTwice ? MultiplyTwice(x, multiplier) : MultiplyOnce(x, multiplier);
}

bool IsByte(CodeType type) { return type == CodeType::kInt8 || type == CodeType::kUint8; }

int32_t LoadCode(CodeType type, const void* codes, int64_t i) {
  switch (type) {
    case CodeType::kInt8:
      return static_cast<const int8_t*>(codes)[i];
    case CodeType::kUint8:
      return static_cast<const uint8_t*>(codes)[i];
    case CodeType::kInt16:
      return static_cast<const int16_t*>(codes)[i];
    case CodeType::kInt32:
      break;
  }
  return static_cast<const int32_t*>(codes)[i];
}

// Calls visit(p) with `codes` as a pointer to elements of the type.
template <typename Visit>
void VisitCodes(CodeType type, const void* codes, Visit visit) {
  switch (type) {
    case CodeType::kInt8:
      return visit(static_cast<const int8_t*>(codes));
    case CodeType::kUint8:
      return visit(static_cast<const uint8_t*>(codes));
    case CodeType::kInt16:
      return visit(static_cast<const int16_t*>(codes));
    case CodeType::kInt32:
      return visit(static_cast<const int32_t*>(codes));
  }
}

template <typename Visit>
void VisitOutput(CodeType type, void* codes, Visit visit) {
  VisitCodes(type, codes,
             [&](const auto* p) { visit(const_cast<std::remove_const_t<std::remove_pointer_t<decltype(p)>>*>(p)); });
}

int16_t Saturate16(int32_t x) { return static_cast<int16_t>(std::clamp(x, -32768, 32767)); }

// 16-bit high product, halves away from zero, saturated.
int16_t DoublingHighMultiply16(int16_t a, int16_t b) {
  const int32_t product = int32_t{a} * b;
  return Saturate16((product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

// The upper 16 bits of a multiplier, rounded.
int16_t ReduceMultiplier(int32_t multiplier) {
  constexpr int32_t kLargest = 0x7FFFFFFF - (1 << 15);
  return multiplier >= kLargest ? int16_t{0x7FFF} : static_cast<int16_t>((multiplier + (1 << 15)) >> 16);
}

// The float function of an operator that is a table of float results; null for others.
using FloatFunction = float (*)(float);
FloatFunction FunctionOf(UnaryOp op) {
  switch (op) {
    case UnaryOp::kLogistic:
      return [](float x) { return 1.0f / (1.0f + std::exp(-x)); };
    case UnaryOp::kTanh:
      return [](float x) { return std::tanh(x); };
    case UnaryOp::kElu:
      return [](float x) { return x < 0.0f ? std::expm1(x) : x; };
    case UnaryOp::kGelu:
      return [](float x) { return 0.5f * x * std::erfc(x * -0.70710678118654752440f); };
    case UnaryOp::kGeluApproximate:
      // sqrt(2 / pi).
      return
          [](float x) { return 0.5f * x * (1.0f + std::tanh(0.79788456080286535588f * (x + 0.044715f * x * x * x))); };
    case UnaryOp::kExp:
      return [](float x) { return std::exp(x); };
    case UnaryOp::kLog:
      return [](float x) { return std::log(x); };
    case UnaryOp::kRsqrt:
      return [](float x) { return 1.0f / std::sqrt(x); };
    case UnaryOp::kSin:
      return [](float x) { return std::sin(x); };
    case UnaryOp::kCos:
      return [](float x) { return std::cos(x); };
    default:
      return nullptr;
  }
}

absl::Status NegativeElement(int64_t i) {
  return absl::InvalidArgumentError(absl::StrCat("element ", i, " is negative, expected a number from 0 on"));
}

// Returns the code of a float result; NaN has the smallest code.
int32_t CodeOf(float value, float inverse_scale, int32_t zero_point, CodeRange range) {
  const float code = std::round(value * inverse_scale) + static_cast<float>(zero_point);
  if (!(code > static_cast<float>(range.low))) return range.low;
  return code >= static_cast<float>(range.high) ? range.high : static_cast<int32_t>(code);
}

}  // namespace

absl::StatusOr<IntegerUnary> IntegerUnary::Make(UnaryOp op, const Affine& input, const Affine& output, float alpha,
                                                Rounding rounding) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  if (output.type == CodeType::kInt32 || (op != UnaryOp::kRequantize && input.type != output.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no integer form from ", NameOf(input.type), " to ", NameOf(output.type)));
  }
  if (rounding == Rounding::kExact) {
    return absl::UnimplementedError("elementwise operators on codes round once or twice");
  }
  IntegerUnary made;
  made.op_ = op;
  made.input_ = input;
  made.output_ = output;
  made.rounding_ = rounding;
  made.range_ = RangeOf(output.type);
  const float scale = input.scale / output.scale;
  double factor = scale;
  // The largest code of a limit of RELU operators.
  const auto limit = [&](float value) {
    const int64_t code = RoundAway(static_cast<double>(value / output.scale));
    return made.range_.Clamp(code + output.zero_point);
  };
  const bool is_byte = IsByte(input.type);
  switch (op) {
    case UnaryOp::kRequantize:
      factor = static_cast<double>(input.scale) / static_cast<double>(output.scale);
      break;
    case UnaryOp::kRelu:
      made.range_.low = limit(0.0f);
      break;
    case UnaryOp::kRelu6:
      made.range_ = {limit(0.0f), limit(6.0f)};
      break;
    case UnaryOp::kReluN1To1:
      made.range_ = {limit(-1.0f), limit(1.0f)};
      break;
    case UnaryOp::kRelu0To1:
      made.range_ = {limit(0.0f), limit(1.0f)};
      break;
    case UnaryOp::kLeakyRelu: {
      const double negative = input.scale * alpha / output.scale;
      if (!std::isfinite(negative)) return absl::InvalidArgumentError(absl::StrCat("alpha ", alpha, " is too large"));
      made.negative_sign_ = negative < 0 ? -1 : 1;
      made.negative_factor_ = QuantizeMultiplier(std::abs(negative));
      PF_RETURN_IF_ERROR(CheckMultiplier(made.negative_factor_, "input scale * alpha / output scale"));
      break;
    }
    case UnaryOp::kHardSwish: {
      if (!is_byte) return absl::UnimplementedError("HARD_SWISH has no integer form of 16 bits");
      // 128 steps for each code leave room in 16 bits; the inner ReLU ranges over [-3, 3] in Q0.15.
      const float fine = (1.0f / 128.0f) * input.scale;
      factor = fine / output.scale;
      made.negative_factor_ = QuantizeMultiplier(static_cast<double>(fine / (3.0f / 32768.0f)));
      if (made.negative_factor_.shift > 15 || made.negative_factor_.shift < -15) {
        return absl::InvalidArgumentError(absl::StrCat("input: scale ", input.scale, " is out of HARD_SWISH's range"));
      }
      break;
    }
    case UnaryOp::kRsqrt:
      if (is_byte) factor = 1.0 / static_cast<double>(std::sqrt(input.scale) * output.scale);
      break;
    case UnaryOp::kLogistic:
    case UnaryOp::kTanh:
      if (!is_byte) {
        PF_RETURN_IF_ERROR(SigmoidInputScale(input.scale, op == UnaryOp::kTanh, &made.factor_));
      }
      break;
    default:
      break;
  }
  const FloatFunction function = FunctionOf(op);
  if (function == nullptr || (op == UnaryOp::kRsqrt && is_byte)) {
    if (!std::isfinite(factor)) {
      return absl::InvalidArgumentError(absl::StrCat("the scales of input and output give the factor ", factor));
    }
    made.factor_ = QuantizeMultiplier(factor);
    // HARD_SWISH shifts to the right only.
    PF_RETURN_IF_ERROR(CheckMultiplier(made.factor_, "input scale / output scale", op == UnaryOp::kHardSwish ? 0 : 30));
  }
  if (is_byte) {
    const CodeRange codes = RangeOf(input.type);
    const bool is_table = function != nullptr && op != UnaryOp::kRsqrt;
    const float inverse = 1.0f / output.scale;
    made.table_.resize(256);
    for (int32_t code = codes.low; code <= codes.high; ++code) {
      const int32_t value = code - input.zero_point;
      const bool is_root = op == UnaryOp::kSqrt || op == UnaryOp::kRsqrt;
      if (is_root && value < 0) {
        made.is_invalid_.resize(256);
        made.is_invalid_[static_cast<uint8_t>(code)] = 1;
        continue;
      }
      made.table_[static_cast<uint8_t>(code)] = static_cast<int16_t>(
          is_table ? CodeOf(function(input.scale * static_cast<float>(value)), inverse, output.zero_point, made.range_)
                   : made.Evaluate(code));
    }
  } else if (function != nullptr && op != UnaryOp::kLogistic && op != UnaryOp::kTanh) {
    // Functions without a value at and below 0 have an end of the output's range there.
    const bool is_positive = op == UnaryOp::kLog || op == UnaryOp::kRsqrt;
    const int32_t end = op == UnaryOp::kLog ? made.range_.low : made.range_.high;
    const float outside = output.scale * static_cast<float>(end - output.zero_point);
    FillTable513([&](float x) { return is_positive && x <= 0 ? outside : function(x); }, input, output, &made.table_);
  }
  if (op == UnaryOp::kLogistic || op == UnaryOp::kTanh) {
    if (!is_byte) FillSigmoidTable(&made.sigmoid_);
  }
  return made;
}

// The code of an element by the operator's definition; not for tables of float results.
int32_t IntegerUnary::Evaluate(int32_t code) const {
  const int32_t value = WrapSubtract(code, input_.zero_point);
  const int32_t zero = output_.zero_point;
  int32_t result;
  switch (op_) {
    case UnaryOp::kLeakyRelu:
      result = value >= 0 ? MultiplyBy(value, factor_, rounding_)
                          : negative_sign_ * MultiplyBy(value, negative_factor_, rounding_);
      break;
    case UnaryOp::kAbs:
      result = MultiplyBy(value < 0 ? WrapSubtract(0, value) : value, factor_, rounding_);
      break;
    case UnaryOp::kNeg: {
      // The reference kernel negates codes: it ignores zero points, and -(-128) is -128.
      const int32_t negative = WrapSubtract(0, code);
      if (output_.type == CodeType::kInt8) return static_cast<int8_t>(negative);
      if (output_.type == CodeType::kUint8) return static_cast<uint8_t>(negative);
      return static_cast<int16_t>(negative);
    }
    case UnaryOp::kSqrt: {
      // The reference kernel truncates the code before it adds the zero point.
      if (value < 0) return range_.low;
      const float root = std::sqrt(input_.scale * static_cast<float>(value)) / output_.scale;
      result = static_cast<int32_t>(std::min(root, 65536.0f));
      break;
    }
    case UnaryOp::kRsqrt: {
      constexpr int kShift = 20;  // Fraction bits of 1 / sqrt(value).
      if (value == 0) return range_.high;
      FixedMultiplier root = InverseSquareRoot(value);
      root.shift += kShift;
      FixedMultiplier factor = factor_;
      factor.shift = std::max(factor.shift - kShift, -31);
      result = MultiplyTwice(MultiplyTwice(1, root), factor);
      break;
    }
    case UnaryOp::kHardSwish: {
      const auto fine = static_cast<int16_t>(value * 128);
      const int16_t scaled = DoublingHighMultiply16(fine, ReduceMultiplier(factor_.multiplier));
      // (x / 3), saturated to [-1, 1]; left shifts saturate, the last one after the multiplication.
      int32_t relu = fine;
      const int shift = negative_factor_.shift;
      if (shift > 0) relu = Saturate16(relu * (1 << (shift - 1)));
      relu = DoublingHighMultiply16(static_cast<int16_t>(relu), ReduceMultiplier(negative_factor_.multiplier));
      if (shift > 0) relu = Saturate16(relu * 2);
      if (shift < 0) relu = RoundingShiftRight(relu, -shift);
      const int32_t product = ((relu + 32768) >> 1) * scaled;
      result = RoundingShiftRight(product / (1 << 15), -factor_.shift);
      break;
    }
    default:
      result = MultiplyBy(value, factor_, rounding_);
      break;
  }
  return range_.Clamp(int64_t{result} + zero);
}

absl::Status IntegerUnary::Compute(int64_t count, const void* x, void* y) const {
  if (IsByte(input_.type)) {
    const auto* codes = static_cast<const uint8_t*>(x);
    if (!is_invalid_.empty()) {
      for (int64_t i = 0; i < count; ++i) {
        if (is_invalid_[codes[i]] != 0) return NegativeElement(i);
      }
    }
    VisitOutput(output_.type, y, [&](auto* to) {
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<std::decay_t<decltype(*to)>>(table_[codes[i]]);
    });
    return absl::OkStatus();
  }
  if (!sigmoid_.empty()) {
    const auto* codes = static_cast<const int16_t*>(x);
    auto* to = static_cast<int16_t*>(y);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = op_ == UnaryOp::kTanh ? TanhByTable(codes[i], factor_, sigmoid_.data())
                                    : SigmoidByTable(codes[i], factor_, sigmoid_.data());
    }
    return absl::OkStatus();
  }
  if (!table_.empty()) {
    const auto* codes = static_cast<const int16_t*>(x);
    auto* to = static_cast<int16_t*>(y);
    for (int64_t i = 0; i < count; ++i) {
      if (op_ == UnaryOp::kRsqrt && codes[i] < input_.zero_point) return NegativeElement(i);
      to[i] = LookUp513(codes[i], table_.data());
    }
    return absl::OkStatus();
  }
  if (op_ == UnaryOp::kSqrt) {
    for (int64_t i = 0; i < count; ++i) {
      if (LoadCode(input_.type, x, i) < input_.zero_point) return NegativeElement(i);
    }
  }
  VisitOutput(output_.type, y, [&](auto* to) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<std::decay_t<decltype(*to)>>(Evaluate(LoadCode(input_.type, x, i)));
    }
  });
  return absl::OkStatus();
}

void QuantizeFloats(const Affine& output, int64_t count, const float* x, void* y) {
  const CodeRange range = RangeOf(output.type);
  const float scale = output.scale;
  const int32_t zero = output.zero_point;
  // Limits of the rounded quotient, which floats hold exactly.
  const auto low = static_cast<float>(range.low - int64_t{zero}), high = static_cast<float>(range.high - int64_t{zero});
  VisitOutput(output.type, y, [&](auto* to) {
    Multiversion([&]() PF_INLINE {
      for (int64_t i = 0; i < count; ++i) {
        const float quotient = x[i] / scale;
        const float limited = std::min(std::max(quotient == quotient ? quotient : 0.0f, low), high);
        // Rounds half away from zero: the distance of a float to its integer part is exact.
        const auto whole = static_cast<int32_t>(limited);
        const float rest = limited - static_cast<float>(whole);
        const int32_t rounded = whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
        to[i] = static_cast<std::decay_t<decltype(*to)>>(rounded + zero);
      }
    });
  });
}

void DequantizeCodes(const Affine& input, int64_t count, const void* x, float* y) {
  const double scale = input.scale;
  const int32_t zero = input.zero_point;
  VisitCodes(input.type, x, [&](const auto* codes) {
    Multiversion([&]() PF_INLINE {
      for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(scale * WrapSubtract(codes[i], zero));
    });
  });
}

void DequantizeChannel(const Affine& input, int64_t count, const void* x, float* y) {
  const float scale = input.scale;
  const int32_t zero = input.zero_point;
  VisitCodes(input.type, x, [&](const auto* codes) {
    for (int64_t i = 0; i < count; ++i) y[i] = scale * static_cast<float>(WrapSubtract(codes[i], zero));
  });
}

absl::StatusOr<IntegerBinary> IntegerBinary::Make(BinaryOp op, const Affine& a, const Affine& b, const Affine& output,
                                                  FusedActivation activation, bool powers_of_two, Rounding rounding) {
  PF_RETURN_IF_ERROR(CheckAffine(a, "first input"));
  PF_RETURN_IF_ERROR(CheckAffine(b, "second input"));
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  const CodeType type = output.type;
  if (a.type != type || b.type != type || type == CodeType::kInt32) {
    return absl::InvalidArgumentError(absl::StrCat("inputs of ", NameOf(a.type), " and ", NameOf(b.type),
                                                   " and an output of ", NameOf(type),
                                                   ", expected one type of 8 or 16 bits"));
  }
  if (rounding == Rounding::kExact) {
    return absl::UnimplementedError("elementwise operators on codes round once or twice");
  }
  const bool is_word = type == CodeType::kInt16;
  const bool is_choice = op == BinaryOp::kMaximum || op == BinaryOp::kMinimum;
  if (is_word && !is_choice && (a.zero_point != 0 || b.zero_point != 0 || output.zero_point != 0)) {
    return absl::InvalidArgumentError("a tensor of int16 has a zero point other than 0");
  }
  IntegerBinary made;
  made.op_ = op;
  made.type_ = type;
  made.rounding_ = rounding;
  made.a_zero_ = a.zero_point;
  made.b_zero_ = b.zero_point;
  made.output_zero_ = output.zero_point;
  made.range_ = ActivationRange(activation, output);
  if (made.range_.low > made.range_.high) {
    return absl::InvalidArgumentError("output: no code remains after the fused activation");
  }
  if (powers_of_two) {
    if (!is_word || (op != BinaryOp::kAdd && op != BinaryOp::kSub)) {
      return absl::InvalidArgumentError("only ADD and SUB of int16 have scales that are powers of two");
    }
    int exponents[3];
    const float scales[3] = {a.scale, b.scale, output.scale};
    for (int i = 0; i < 3; ++i) exponents[i] = static_cast<int>(std::lround(std::log2(scales[i])));
    const int a_shift = exponents[2] - exponents[0], b_shift = exponents[2] - exponents[1];
    if (std::min(a_shift, b_shift) != 0 || std::max(a_shift, b_shift) > 15) {
      return absl::InvalidArgumentError(absl::StrCat("the inputs' scales are 2^-", a_shift, " and 2^-", b_shift,
                                                     " times the output's, expected one of them to be equal to it and "
                                                     "the other from 2^-15 to 1 times it"));
    }
    made.powers_of_two_ = true;
    made.a_factor_.shift = -a_shift;
    made.b_factor_.shift = -b_shift;
    return made;
  }
  const double twice_largest = 2.0 * static_cast<double>(std::max(a.scale, b.scale));
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kSquaredDifference: {
      const bool is_square = op == BinaryOp::kSquaredDifference;
      // Fraction bits: sums of 8-bit codes have 20, of 16-bit codes 15; squares have twice as many as differences.
      made.left_shift_ = is_square ? 7 : is_word ? 15 : 20;
      made.a_factor_ = QuantizeMultiplier(static_cast<double>(a.scale) / twice_largest);
      made.b_factor_ = QuantizeMultiplier(static_cast<double>(b.scale) / twice_largest);
      const auto unit = static_cast<float>(1 << (is_square ? 2 * made.left_shift_ : made.left_shift_));
      const double factor =
          (is_square ? twice_largest * twice_largest : twice_largest) / static_cast<double>(unit * output.scale);
      if (!std::isfinite(factor)) {
        return absl::InvalidArgumentError(absl::StrCat("the scales of inputs and output give the factor ", factor));
      }
      made.output_factor_ = QuantizeMultiplier(factor);
      break;
    }
    case BinaryOp::kMul:
    case BinaryOp::kPrelu: {
      const float factor = a.scale * b.scale / output.scale;
      const float positive = a.scale / output.scale;
      if (!std::isfinite(factor) || !std::isfinite(positive)) {
        return absl::InvalidArgumentError(absl::StrCat("the scales of inputs and output give the factor ", factor));
      }
      made.output_factor_ = QuantizeMultiplier(static_cast<double>(factor));
      if (op == BinaryOp::kPrelu) {
        made.a_factor_ = QuantizeMultiplier(static_cast<double>(positive));
        PF_RETURN_IF_ERROR(CheckMultiplier(made.a_factor_, "input scale / output scale"));
      }
      break;
    }
    case BinaryOp::kDiv: {
      const float factor = a.scale / (b.scale * output.scale);
      if (!std::isfinite(factor)) {
        return absl::InvalidArgumentError(absl::StrCat("the scales of inputs and output give the factor ", factor));
      }
      made.output_factor_ = QuantizeMultiplier(static_cast<double>(factor));
      break;
    }
    case BinaryOp::kMaximum:
    case BinaryOp::kMinimum:
      break;
  }
  PF_RETURN_IF_ERROR(CheckMultiplier(made.output_factor_, "the factor of the scales of inputs and output"));
  made.SelectLoop();
  return made;
}

void IntegerBinary::SelectLoop() {
  const bool is_sum = op_ == BinaryOp::kAdd || op_ == BinaryOp::kSub;
  if (!IsByte(type_) || rounding_ != Rounding::kTwice || (!is_sum && op_ != BinaryOp::kMul)) return;
  if (output_factor_.shift >= 0 || output_factor_.shift < -31) return;
  loop_ = SupportedByteBinaryLoop();
  bytes_.is_sum = is_sum;
  bytes_.is_unsigned = type_ == CodeType::kUint8;
  bytes_.sign = op_ == BinaryOp::kSub ? -1 : 1;
  bytes_.zeros[0] = a_zero_;
  bytes_.zeros[1] = b_zero_;
  // Factors of operands are at most 1/2.
  bytes_.multipliers[0] = a_factor_.multiplier;
  bytes_.multipliers[1] = b_factor_.multiplier;
  bytes_.shifts[0] = -a_factor_.shift;
  bytes_.shifts[1] = -b_factor_.shift;
  bytes_.output_multiplier = output_factor_.multiplier;
  bytes_.output_shift = -output_factor_.shift;
  const int32_t offset = bytes_.is_unsigned ? 128 : 0;
  bytes_.conversion.zero_point = output_zero_ - offset;
  bytes_.conversion.low = static_cast<int8_t>(range_.low - offset);
  bytes_.conversion.high = static_cast<int8_t>(range_.high - offset);
  bytes_.conversion.flip = bytes_.is_unsigned ? 0x80 : 0;
}

template <typename T>
PF_INLINE inline void IntegerBinary::ComputeSum(int64_t count, const T* a, int64_t a_step, const T* b, int64_t b_step,
                                                T* y) const {
  const FixedMultiplier a_factor = a_factor_, b_factor = b_factor_, factor = output_factor_;
  const int32_t a_zero = a_zero_, b_zero = b_zero_, sign = op_ == BinaryOp::kSub ? -1 : 1;
  const int left = left_shift_;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t first = MultiplyTwice((a[i * a_step] - a_zero) * (1 << left), a_factor);
    const int32_t second = MultiplyTwice((b[i * b_step] - b_zero) * (1 << left), b_factor);
    const int32_t code = MultiplyTwice(first + sign * second, factor);
    y[i] = static_cast<T>(range_.Clamp(int64_t{code} + output_zero_));
  }
}

template <typename T>
PF_INLINE inline void IntegerBinary::ComputeProduct(int64_t count, const T* a, int64_t a_step, const T* b,
                                                    int64_t b_step, T* y) const {
  const FixedMultiplier factor = output_factor_;
  const int32_t a_zero = a_zero_, b_zero = b_zero_;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t code = MultiplyTwice((a[i * a_step] - a_zero) * (b[i * b_step] - b_zero), factor);
    y[i] = static_cast<T>(range_.Clamp(int64_t{code} + output_zero_));
  }
}

// The code of one pair of elements.
absl::StatusOr<int32_t> IntegerBinary::Evaluate(int32_t a, int32_t b) const {
  const int32_t x = a - a_zero_, z = b - b_zero_;
  int32_t result = 0;
  switch (op_) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kSquaredDifference: {
      const int32_t sign = op_ == BinaryOp::kAdd ? 1 : -1;
      if (powers_of_two_) {
        const int32_t sum = RoundingShiftRight(a, -a_factor_.shift) + sign * RoundingShiftRight(b, -b_factor_.shift);
        return range_.Clamp(Saturate16(sum));
      }
      const int32_t first = MultiplyBy(x * (1 << left_shift_), a_factor_, rounding_);
      const int32_t second = MultiplyBy(z * (1 << left_shift_), b_factor_, rounding_);
      const int32_t sum = first + sign * second;
      result =
          MultiplyBy(op_ == BinaryOp::kSquaredDifference ? WrapMultiply(sum, sum) : sum, output_factor_, rounding_);
      break;
    }
    case BinaryOp::kMul:
      result = MultiplyBy(x * z, output_factor_, rounding_);
      break;
    case BinaryOp::kPrelu:
      result = x >= 0 ? MultiplyBy(x, a_factor_, rounding_) : MultiplyBy(x * z, output_factor_, rounding_);
      break;
    case BinaryOp::kMaximum:
      return range_.Clamp(std::max(a, b));
    case BinaryOp::kMinimum:
      return range_.Clamp(std::min(a, b));
    case BinaryOp::kDiv: {
      if (z == 0) return absl::InvalidArgumentError("divides by zero");
      // The reciprocal of the divisor as 1 / (1 + f) * 2^-bits, and the dividend with as few sign bits as possible.
      const int32_t divisor = z < 0 ? -z : z, dividend = z < 0 ? -x : x;
      const int leading = __builtin_clz(static_cast<uint32_t>(divisor));
      const int32_t reciprocal =
          OneOverOnePlus(static_cast<int32_t>((static_cast<uint32_t>(divisor) << leading) - (uint32_t{1} << 31)));
      const int headroom = __builtin_clrsb(dividend);
      const int32_t quotient = DoublingHighMultiply(WrapShiftLeft(dividend, headroom), reciprocal);
      const int shift = output_factor_.shift - (31 - leading) - headroom;
      const int32_t scaled = DoublingHighMultiply(quotient, output_factor_.multiplier);
      if (shift > 0) {
        // The dividend's highest bit is set, so a result that needs a left shift exceeds 16 bits, or is 0.
        result = scaled == 0 ? 0 : scaled > 0 ? 1 << 17 : -(1 << 17);
      } else if (shift < -31) {
        // The reference kernel shifts by the exponent modulo 32, as x86 does: quotients near 0 become large.
        result = (scaled >> (-shift & 31)) + (scaled > (scaled < 0 ? 0 : -1) ? 1 : 0);
      } else {
        result = RoundingShiftRight(scaled, -shift);
      }
      break;
    }
  }
  return range_.Clamp(int64_t{result} + output_zero_);
}

absl::Status IntegerBinary::Compute(int64_t count, const void* a, int64_t a_step, const void* b, int64_t b_step,
                                    void* y) const {
  if (loop_ != nullptr) {
    loop_(count, bytes_, static_cast<const uint8_t*>(a), a_step, static_cast<const uint8_t*>(b), b_step,
          static_cast<uint8_t*>(y));
    return absl::OkStatus();
  }
  const bool is_sum = (op_ == BinaryOp::kAdd || op_ == BinaryOp::kSub) && !powers_of_two_;
  if (rounding_ == Rounding::kTwice && (is_sum || op_ == BinaryOp::kMul)) {
    VisitOutput(type_, y, [&](auto* to) {
      using T = std::decay_t<decltype(*to)>;
      if constexpr (sizeof(T) < sizeof(int32_t)) {
        Multiversion([&]() PF_INLINE {
          const auto *first = static_cast<const T*>(a), *second = static_cast<const T*>(b);
          if (is_sum) {
            ComputeSum(count, first, a_step, second, b_step, to);
          } else {
            ComputeProduct(count, first, a_step, second, b_step, to);
          }
        });
      }
    });
    return absl::OkStatus();
  }
  for (int64_t i = 0; i < count; ++i) {
    PF_ASSIGN_OR_RETURN(const int32_t code, Evaluate(LoadCode(type_, a, i * a_step), LoadCode(type_, b, i * b_step)));
    if (type_ == CodeType::kInt16) {
      static_cast<int16_t*>(y)[i] = static_cast<int16_t>(code);
    } else {
      static_cast<uint8_t*>(y)[i] = static_cast<uint8_t>(code);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<IntegerComparison> IntegerComparison::Make(CompareOp op, const Affine& a, const Affine& b) {
  PF_RETURN_IF_ERROR(CheckAffine(a, "first input"));
  PF_RETURN_IF_ERROR(CheckAffine(b, "second input"));
  if (a.type != b.type || a.type == CodeType::kInt32) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs of ", NameOf(a.type), " and ", NameOf(b.type), ", expected one type of 8 or 16 bits"));
  }
  IntegerComparison made;
  made.op_ = op;
  made.a_ = a;
  made.b_ = b;
  made.a_factor_ = QuantizeMultiplier(static_cast<double>(a.scale));
  made.b_factor_ = QuantizeMultiplier(static_cast<double>(b.scale));
  PF_RETURN_IF_ERROR(CheckMultiplier(made.a_factor_, "first input: scale"));
  PF_RETURN_IF_ERROR(CheckMultiplier(made.b_factor_, "second input: scale"));
  return made;
}

void IntegerComparison::Compute(int64_t count, const void* a, int64_t a_step, const void* b, int64_t b_step,
                                bool* y) const {
  constexpr int kLeftShift = 8;  // Fraction bits of both sides.
  for (int64_t i = 0; i < count; ++i) {
    const int32_t x = LoadCode(a_.type, a, i * a_step) - a_.zero_point;
    const int32_t z = LoadCode(b_.type, b, i * b_step) - b_.zero_point;
    // The reference kernels compare codes of int16 as they are.
    const bool is_word = a_.type == CodeType::kInt16;
    const int32_t first = is_word ? x : MultiplyTwice(x * (1 << kLeftShift), a_factor_);
    const int32_t second = is_word ? z : MultiplyTwice(z * (1 << kLeftShift), b_factor_);
    switch (op_) {
      case CompareOp::kEqual:
        y[i] = first == second;
        break;
      case CompareOp::kNotEqual:
        y[i] = first != second;
        break;
      case CompareOp::kLess:
        y[i] = first < second;
        break;
      case CompareOp::kLessEqual:
        y[i] = first <= second;
        break;
      case CompareOp::kGreater:
        y[i] = first > second;
        break;
      case CompareOp::kGreaterEqual:
        y[i] = first >= second;
        break;
    }
  }
}

absl::StatusOr<ConcatenationInput> ConcatenationInput::Make(const Affine& input, const Affine& output) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  if (input.type != CodeType::kUint8 || output.type != CodeType::kUint8) {
    return absl::InvalidArgumentError(absl::StrCat("CONCATENATION of ", NameOf(input.type), " to ", NameOf(output.type),
                                                   " does not rescale, expected uint8"));
  }
  ConcatenationInput made;
  const float inverse = 1.0f / output.scale;
  const float scale = input.scale * inverse;
  const float bias = static_cast<float>(-input.zero_point) * scale;
  const bool is_same = input.zero_point == output.zero_point && input.scale == output.scale;
  for (int32_t code = 0; code < 256; ++code) {
    const float product = static_cast<float>(code) * scale;
    const int64_t rounded = RoundAway(static_cast<double>(product + bias));
    made.table_[code] = static_cast<uint8_t>(is_same ? code : std::clamp<int64_t>(rounded + output.zero_point, 0, 255));
  }
  return made;
}

void ConcatenationInput::Compute(int64_t count, const uint8_t* x, uint8_t* y) const {
  for (int64_t i = 0; i < count; ++i) y[i] = table_[x[i]];
}

}  // namespace permafrost
