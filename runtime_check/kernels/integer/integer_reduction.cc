// Implements poolings, reductions, normalisations and softmax of codes.
#include "runtime_check/kernels/integer/integer_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/integer/integer_tables.h"

namespace permafrost {
namespace {

// Offsets into tensors stay below this number of bytes.
constexpr int64_t kMostBytes = int64_t{1} << 62;

// Returns InvalidArgument unless the product of the factors is a possible size.
absl::Status CheckProduct(absl::Span<const int64_t> factors) {
  int64_t product = 8;  // Bytes of the widest element.
  for (const int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product) || product > kMostBytes) {
      return absl::InvalidArgumentError("an operand is too large");
    }
  }
  return absl::OkStatus();
}

// Calls visit with null pointers to the type of the codes: 8 or 16 bits.
template <typename Visit>
void VisitType(CodeType type, Visit visit) {
  if (type == CodeType::kInt8) return visit(static_cast<int8_t*>(nullptr));
  if (type == CodeType::kUint8) return visit(static_cast<uint8_t*>(nullptr));
  visit(static_cast<int16_t*>(nullptr));
}

// The fixed scale of an operator's output.
absl::Status RequireOutput(const Affine& output, float scale, int32_t zero_point) {
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  // Converters write the scale in float, some of them one unit in the last place away.
  if (std::abs(output.scale - scale) > 1e-3f * scale || output.zero_point != zero_point) {
    return absl::InvalidArgumentError(absl::StrCat("output: has scale ", output.scale, " and zero point ",
                                                   output.zero_point, ", expected ", scale, " and ", zero_point));
  }
  return absl::OkStatus();
}

constexpr int kDifferenceBits = 5;  // Integer bits of differences to a row's largest element.

// The largest difference that fits in kDifferenceBits integer bits before it is scaled by 2^shift.
int32_t InputRadius(int shift) {
  const double radius = ((1 << kDifferenceBits) - 1) * std::ldexp(1.0, 31 - kDifferenceBits) * std::ldexp(1.0, -shift);
  return static_cast<int32_t>(std::min(std::floor(radius), 65536.0));
}

// Factor from differences of codes to Q5.26.
absl::StatusOr<FixedMultiplier> DifferenceFactor(float beta, float scale) {
  const double factor = static_cast<double>(beta) * static_cast<double>(scale) * (1 << (31 - kDifferenceBits));
  if (!(factor > 0) || std::isinf(factor)) {
    return absl::InvalidArgumentError(absl::StrCat("beta ", beta, " is not positive and finite"));
  }
  return QuantizeMultiplier(std::min(factor, 2147483647.0));  // 2^31 - 1.
}

}  // namespace

absl::StatusOr<IntegerPool> IntegerPool::Make(PoolOp op, const Affine& codes, FusedActivation activation, int64_t batch,
                                              int64_t channels, const Window& window) {
  PF_RETURN_IF_ERROR(CheckAffine(codes, "input"));
  if (codes.type == CodeType::kInt32) return absl::InvalidArgumentError("input: has type int32, expected 8 or 16 bits");
  const WindowAxis &y = window.y, &x = window.x;
  for (const WindowAxis* axis : {&y, &x}) {
    // 2^31: products of a position and a stride fit in int64_t.
    if (axis->taps < 1 || axis->stride < 1 || axis->stride > int64_t{1} << 31 || axis->dilation != 1 ||
        axis->pad_before < -(int64_t{1} << 31) || axis->pad_before > int64_t{1} << 31) {
      return absl::InvalidArgumentError("the window has an impossible size");
    }
  }
  PF_RETURN_IF_ERROR(CheckProduct({batch, y.input, x.input, channels}));
  PF_RETURN_IF_ERROR(CheckProduct({batch, y.output, x.output, channels}));
  IntegerPool made;
  made.op_ = op;
  made.type_ = codes.type;
  made.range_ = ActivationRange(activation, codes);
  if (made.range_.low > made.range_.high) {
    return absl::InvalidArgumentError("output: no code remains after the fused activation");
  }
  made.window_ = window;
  made.channels_ = channels;
  made.rows_ = batch * y.output;
  made.scratch_size_ = channels * 4;
  return made;
}

template <typename T>
PF_INLINE inline void IntegerPool::ComputeLines(const T* input, int64_t first, int64_t last, int32_t* sums,
                                                T* output) const {
  const WindowAxis &y = window_.y, &x = window_.x;
  const int64_t channels = channels_;
  // A float quotient of integers whose magnitudes add up to at most 2^24 is truncated to the exact quotient: it is not
  // rounded up to an integer, because a quotient below the integer n is at most n - 1 / divisor.
  constexpr int64_t kMostFloatPixels = (int64_t{1} << 24) / (2 - 2 * int64_t{std::numeric_limits<T>::lowest()} +
                                                             2 * int64_t{std::numeric_limits<T>::max()});
  for (int64_t row = first; row < last; ++row) {
    const int64_t line = row % y.output, image = row / y.output;
    int64_t y_begin, y_end, x_begin, x_end;
    y.TapsInside(line, &y_begin, &y_end);
    for (int64_t column = 0; column < x.output; ++column) {
      x.TapsInside(column, &x_begin, &x_end);
      std::fill_n(sums, channels, op_ == PoolOp::kMax ? std::numeric_limits<T>::min() : 0);
      for (int64_t ty = y_begin; ty < y_end; ++ty) {
        for (int64_t tx = x_begin; tx < x_end; ++tx) {
          const int64_t pixel = (image * y.input + y.First(line) + ty) * x.input + x.First(column) + tx;
          const T* codes = input + pixel * channels;
          if (op_ == PoolOp::kMax) {
            for (int64_t c = 0; c < channels; ++c) sums[c] = std::max<int32_t>(sums[c], codes[c]);
          } else {
            for (int64_t c = 0; c < channels; ++c) sums[c] = WrapAdd(sums[c], codes[c]);
          }
        }
      }
      T* to = output + (row * x.output + column) * channels;
      if (op_ == PoolOp::kAverage) {
        const int64_t count = std::max<int64_t>((y_end - y_begin) * (x_end - x_begin), 1);
        if (count <= kMostFloatPixels) {
          const auto divisor = static_cast<float>(count);
          const auto half = static_cast<int32_t>(count / 2);
          for (int64_t c = 0; c < channels; ++c) {
            const int32_t dividend = sums[c] + (sums[c] > 0 ? half : -half);
            sums[c] = static_cast<int32_t>(static_cast<float>(dividend) / divisor);
          }
        } else {
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t half = sums[c] > 0 ? count / 2 : -(count / 2);
            sums[c] = static_cast<int32_t>((sums[c] + half) / count);
          }
        }
      }
      for (int64_t c = 0; c < channels; ++c) to[c] = static_cast<T>(std::clamp(sums[c], range_.low, range_.high));
    }
  }
}

void IntegerPool::Compute(const void* input, int64_t first, int64_t last, char* scratch, void* output) const {
  VisitType(type_, [&](auto* type) {
    using T = std::decay_t<decltype(*type)>;
    Multiversion([&]() PF_INLINE {
      ComputeLines(static_cast<const T*>(input), first, last, reinterpret_cast<int32_t*>(scratch),
                   static_cast<T*>(output));
    });
  });
}

absl::StatusOr<IntegerReduction> IntegerReduction::Make(ReduceOp op, const Affine& input, const Affine& output,
                                                        absl::Span<const int64_t> dims,
                                                        absl::Span<const bool> is_reduced, Rounding rounding) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  if (input.type != output.type || input.type == CodeType::kInt32) {
    return absl::InvalidArgumentError(absl::StrCat("reduces ", NameOf(input.type), " to ", NameOf(output.type),
                                                   ", expected one type of 8 or 16 bits"));
  }
  if (dims.size() != is_reduced.size()) return absl::InvalidArgumentError("not every dimension is kept or reduced");
  PF_RETURN_IF_ERROR(CheckProduct(dims));
  IntegerReduction made;
  made.op_ = op;
  made.input_ = input;
  made.output_ = output;
  made.rounding_ = rounding;
  made.outputs_ = made.count_ = 1;
  // Neighbouring dimensions that are both kept or both reduced become one.
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    std::vector<Axis>& axes = is_reduced[d] ? made.reduced_ : made.kept_;
    (is_reduced[d] ? made.count_ : made.outputs_) *= dims[d];
    if (d + 1 < dims.size() && is_reduced[d] == is_reduced[d + 1]) {
      axes.back().size *= dims[d];
    } else {
      axes.push_back({dims[d], step});
    }
    step *= dims[d];
  }
  std::reverse(made.kept_.begin(), made.kept_.end());
  std::reverse(made.reduced_.begin(), made.reduced_.end());
  const double input_scale = input.scale, output_scale = output.scale;
  double factor = 1;
  if (op == ReduceOp::kMean || op == ReduceOp::kSum) {
    factor = input_scale / output_scale;
  } else if (op == ReduceOp::kProd) {
    factor = input_scale / std::pow(output_scale, 1.0 / static_cast<double>(std::max<int64_t>(made.count_, 1)));
  }
  if (!std::isfinite(factor)) {
    return absl::InvalidArgumentError(absl::StrCat("the scales of input and output give the factor ", factor));
  }
  made.factor_ = QuantizeMultiplier(factor);
  PF_RETURN_IF_ERROR(CheckMultiplier(made.factor_, "input scale / output scale", op == ReduceOp::kProd ? 14 : 30));
  if (op == ReduceOp::kMean && made.count_ > 0) {
    // The division by the count is part of the multiplier, which keeps as many bits as fit in 64.
    const int bits = 63 - __builtin_clzll(static_cast<uint64_t>(made.count_));
    const int shift = std::min({bits, 32, 31 + made.factor_.shift});
    made.factor_.multiplier =
        static_cast<int32_t>((int64_t{made.factor_.multiplier} * (int64_t{1} << shift)) / made.count_);
    made.factor_.shift -= shift;
  }
  return made;
}

int32_t IntegerReduction::CodeOf(int64_t sum) const {
  const CodeRange range = RangeOf(output_.type);
  const int32_t zero = output_.zero_point;
  switch (op_) {
    case ReduceOp::kMean:
    case ReduceOp::kSum: {
      if (op_ == ReduceOp::kSum && output_.type != CodeType::kUint8) {
        // LiteRT's reference kernel is wrong for signed codes; this is its optimised one, in float.
        const float scale = input_.scale / output_.scale;
        const float bias = static_cast<float>(-input_.zero_point) * scale * static_cast<float>(count_);
        return range.Clamp(RoundAway(static_cast<double>(static_cast<float>(sum) * scale + bias)) + zero);
      }
      const auto value = static_cast<int32_t>(sum - count_ * input_.zero_point);
      const int32_t code = rounding_ == Rounding::kTwice ? MultiplyTwice(value, factor_) : MultiplyOnce(value, factor_);
      return range.Clamp(int64_t{code} + zero);
    }
    case ReduceOp::kProd:
      return range.Clamp(int64_t{static_cast<int32_t>(MultiplyWide(sum, factor_))} + zero);
    case ReduceOp::kMax:
    case ReduceOp::kMin:
      break;
  }
  return range.Clamp(sum);
}

template <typename T>
PF_INLINE inline void IntegerReduction::ComputeCodes(const T* input, int64_t first, int64_t last, T* output) const {
  constexpr int64_t kBlock = 64;  // Neighbouring outputs that are reduced together.
  const bool is_inner_kept = !kept_.empty() && kept_.back().step == 1;
  const int64_t inner = is_inner_kept ? kept_.back().size : 1;
  int64_t start = 0;
  if (op_ == ReduceOp::kMax) start = std::numeric_limits<T>::min();
  if (op_ == ReduceOp::kMin) start = std::numeric_limits<T>::max();
  const size_t reduced = reduced_.size(), outer_axes = kept_.size() - (is_inner_kept ? 1 : 0);
  for (int64_t begin = first; begin < last;) {
    const int64_t column = begin % inner, run = std::min({kBlock, inner - column, last - begin});
    int64_t rest = begin / inner, offset = column;
    for (size_t d = outer_axes; d-- > 0;) {
      offset += rest % kept_[d].size * kept_[d].step;
      rest /= kept_[d].size;
    }
    int64_t sums[kBlock];
    std::fill_n(sums, run, start);
    for (int64_t i = 0; i < count_;) {
      // The innermost reduced axis is a loop of its own.
      int64_t from = offset, index = i;
      const int64_t size = reduced == 0 ? 1 : reduced_[reduced - 1].size;
      const int64_t step = reduced == 0 ? 0 : reduced_[reduced - 1].step;
      index /= size;
      for (size_t d = reduced < 2 ? 0 : reduced - 1; d-- > 0;) {
        from += index % reduced_[d].size * reduced_[d].step;
        index /= reduced_[d].size;
      }
      for (int64_t k = 0; k < size; ++k, from += step) {
        const T* codes = input + from;
        for (int64_t j = 0; j < run; ++j) {
          switch (op_) {
            case ReduceOp::kMean:
            case ReduceOp::kSum:
              sums[j] += codes[j];
              break;
            case ReduceOp::kMax:
              sums[j] = std::max<int64_t>(sums[j], codes[j]);
              break;
            case ReduceOp::kMin:
              sums[j] = std::min<int64_t>(sums[j], codes[j]);
              break;
            case ReduceOp::kProd: {
              const int32_t value = codes[j] - input_.zero_point;
              // The first factor starts the product, each further one is rescaled.
              sums[j] = i + k == 0 ? value : static_cast<int32_t>(MultiplyWide(sums[j] * value, factor_));
              break;
            }
          }
        }
      }
      i += size;
    }
    for (int64_t j = 0; j < run; ++j) output[begin + j] = static_cast<T>(CodeOf(sums[j]));
    begin += run;
  }
}

void IntegerReduction::Compute(const void* input, int64_t first, int64_t last, void* output) const {
  VisitType(input_.type, [&](auto* type) {
    using T = std::decay_t<decltype(*type)>;
    Multiversion([&]() PF_INLINE { ComputeCodes(static_cast<const T*>(input), first, last, static_cast<T*>(output)); });
  });
}

absl::StatusOr<IntegerSoftmax> IntegerSoftmax::Make(const Affine& input, const Affine& output, float beta,
                                                    int64_t depth) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  const bool is_word = input.type == CodeType::kInt16;
  if (input.type == CodeType::kInt32 || (output.type != CodeType::kInt16 && (is_word || output.type != input.type))) {
    return absl::InvalidArgumentError(
        absl::StrCat("SOFTMAX has no integer form from ", NameOf(input.type), " to ", NameOf(output.type)));
  }
  if (output.type == CodeType::kInt16) {
    // The scale of outputs of int8 in int16 is 1/65536, with zero point -32768.
    PF_RETURN_IF_ERROR(is_word ? RequireOutput(output, 1.0f / 32768, 0) : RequireOutput(output, 1.0f / 65536, -32768));
  } else {
    PF_RETURN_IF_ERROR(RequireOutput(output, 1.0f / 256, output.type == CodeType::kInt8 ? -128 : 0));
  }
  PF_RETURN_IF_ERROR(CheckProduct({depth}));
  IntegerSoftmax made;
  made.input_ = input.type;
  made.output_ = output.type;
  made.depth_ = depth;
  PF_ASSIGN_OR_RETURN(made.factor_, DifferenceFactor(beta, input.scale));
  if (!is_word) {
    const int32_t radius = InputRadius(made.factor_.shift);
    made.exponentials_.resize(256, -1);
    for (int32_t difference = 0; difference < 256 && difference <= radius; ++difference) {
      made.exponentials_[difference] = ExpOfNegative(MultiplyTwice(-difference, made.factor_));
    }
    return made;
  }
  constexpr double kSpan = 65535;  // Steps of the tables: exp on [-10, 0], and 1 / (1 + x) on [0, 1].
  const double factor = static_cast<double>(input.scale * beta) / (10.0 / kSpan);
  if (!std::isfinite(factor)) {
    return absl::InvalidArgumentError(absl::StrCat("beta ", beta, " is too large"));
  }
  made.factor_ = QuantizeMultiplier(factor);
  PF_RETURN_IF_ERROR(CheckMultiplier(made.factor_, "input scale * beta / (10 / 65535)"));
  FillTable513([](double x) { return std::exp(x); }, 10.0 / kSpan, 32767, 2.0 / kSpan, 0, &made.exp_table_);
  FillTable513([](double x) { return 1.0 / (1.0 + x); }, 1.0 / kSpan, -32768, 2.0 / kSpan, 0, &made.inverse_table_);
  return made;
}

template <typename In, typename Out>
void IntegerSoftmax::ComputeBytes(int64_t rows, const In* x, Out* y) const {
  constexpr int kSumBits = 12;  // Integer bits of the sum.
  constexpr int kOutputBits = sizeof(Out) * 8;
  const CodeRange range = RangeOf(output_);
  for (int64_t row = 0; row < rows; ++row, x += depth_, y += depth_) {
    const In largest = *std::max_element(x, x + depth_);
    uint32_t total = 0;
    for (int64_t c = 0; c < depth_; ++c) {
      const int32_t value = exponentials_[largest - x[c]];
      if (value >= 0) total += static_cast<uint32_t>(RoundingShiftRight(value, kSumBits));
    }
    // The largest element adds 2^19; the sum of more than 8,191 of them may wrap around.
    const int headroom = __builtin_clz(total | 1);
    const int32_t scale = OneOverOnePlus(static_cast<int32_t>((total << headroom) - (uint32_t{1} << 31)));
    const int exponent = kSumBits - headroom + 31 - kOutputBits;
    for (int64_t c = 0; c < depth_; ++c) {
      const int32_t value = exponentials_[largest - x[c]];
      const bool is_zero = value < 0 || exponent > 31;
      const int32_t code = is_zero ? 0 : RoundingShiftRight(DoublingHighMultiply(scale, value), std::max(exponent, 0));
      y[c] = static_cast<Out>(range.Clamp(int64_t{code} + range.low));
    }
  }
}

void IntegerSoftmax::ComputeWords(int64_t rows, const int16_t* x, int16_t* y) const {
  for (int64_t row = 0; row < rows; ++row, x += depth_, y += depth_) {
    const int16_t largest = *std::max_element(x, x + depth_);
    uint32_t total = 0;
    for (int64_t c = 0; c < depth_; ++c) {
      // A difference that does not fit in 32 bits after its shift is far below the table.
      const int64_t shifted = int64_t{x[c] - largest} * (int64_t{1} << std::max(factor_.shift, 0));
      const auto limited = static_cast<int32_t>(std::max<int64_t>(shifted, std::numeric_limits<int32_t>::min()));
      const int32_t scaled = MultiplyTwice(limited, {factor_.multiplier, std::min(factor_.shift, 0)});
      const int64_t code = std::clamp<int64_t>(int64_t{scaled} + 32767, -32768, 32767);
      y[c] = LookUp513(static_cast<int16_t>(code), exp_table_.data());
      total += static_cast<uint32_t>(y[c]);
    }
    const int leading = __builtin_clz(total | 1);
    // 1 / sum: the sum as 1 + f, with f in 16 bits.
    const int64_t normal = leading > 0 ? int64_t{total} << (leading - 1) : int64_t{total} >> 1;
    const int64_t fraction = ((normal + (1 << 13)) >> 14) - (1 << 15) - (1 << 16);
    const int64_t reciprocal =
        LookUp513(static_cast<int16_t>(std::clamp<int64_t>(fraction, -32768, 32767)), inverse_table_.data());
    const int shift = 31 - leading;
    for (int64_t c = 0; c < depth_; ++c) {
      const int64_t product = y[c] * reciprocal;
      const int64_t code = shift > 0 ? (product + (int64_t{1} << (shift - 1))) >> shift : product;
      y[c] = static_cast<int16_t>(std::clamp<int64_t>(code, 0, 32767));
    }
  }
}

void IntegerSoftmax::Compute(int64_t rows, const void* x, void* y) const {
  if (depth_ == 0) return;
  if (input_ == CodeType::kInt16) {
    return ComputeWords(rows, static_cast<const int16_t*>(x), static_cast<int16_t*>(y));
  }
  const auto compute = [&](const auto* codes) {
    if (output_ == CodeType::kInt16) {
      ComputeBytes(rows, codes, static_cast<int16_t*>(y));
    } else {
      ComputeBytes(rows, codes, static_cast<std::remove_const_t<std::remove_pointer_t<decltype(codes)>>*>(y));
    }
  };
  if (input_ == CodeType::kInt8) {
    compute(static_cast<const int8_t*>(x));
  } else {
    compute(static_cast<const uint8_t*>(x));
  }
}

absl::StatusOr<IntegerLogSoftmax> IntegerLogSoftmax::Make(const Affine& input, const Affine& output, float beta,
                                                          int64_t depth) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  if (input.type != output.type || (input.type != CodeType::kInt8 && input.type != CodeType::kUint8)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LOG_SOFTMAX has no integer form from ", NameOf(input.type), " to ", NameOf(output.type)));
  }
  PF_RETURN_IF_ERROR(RequireOutput(output, 16.0f / 256, output.type == CodeType::kInt8 ? 127 : 255));
  PF_RETURN_IF_ERROR(CheckProduct({depth}));
  IntegerLogSoftmax made;
  made.type_ = input.type;
  made.depth_ = depth;
  PF_ASSIGN_OR_RETURN(made.factor_, DifferenceFactor(beta, input.scale));
  const double reverse = std::ldexp(1.0, 31 - made.factor_.shift) / static_cast<double>(made.factor_.multiplier);
  made.reverse_factor_ = QuantizeMultiplier(reverse);
  PF_RETURN_IF_ERROR(CheckMultiplier(made.reverse_factor_, "1 / (beta * input scale * 2^26)"));
  made.difference_low_ = -InputRadius(made.factor_.shift);
  made.exponentials_.resize(256, -1);
  made.differences_.resize(256);
  for (int32_t difference = 0; difference < 256 && -difference >= made.difference_low_; ++difference) {
    made.differences_[difference] = MultiplyTwice(-difference, made.factor_);
    made.exponentials_[difference] = RoundingShiftRight(ExpOfNegative(made.differences_[difference]), 12);
  }
  return made;
}

template <typename T>
void IntegerLogSoftmax::ComputeRows(int64_t rows, const T* x, T* y) const {
  const CodeRange range = RangeOf(type_);
  for (int64_t row = 0; row < rows; ++row, x += depth_, y += depth_) {
    const T largest = *std::max_element(x, x + depth_);
    uint32_t total = 0;
    for (int64_t c = 0; c < depth_; ++c) {
      const int32_t value = exponentials_[largest - x[c]];
      if (value >= 0) total += static_cast<uint32_t>(value);
    }
    // Sums of more than 4,095 large elements exceed Q12.19 and are limited.
    const auto limited = static_cast<int32_t>(std::min<uint32_t>(total, std::numeric_limits<int32_t>::max()));
    const int32_t log_sum = LogOfAtLeastOne(limited);
    // Differences for which the logarithm of the sum can be subtracted without overflow.
    const int32_t lowest = std::max(
        difference_low_ - 1, MultiplyTwice(WrapAdd(log_sum, std::numeric_limits<int32_t>::min()), reverse_factor_));
    for (int64_t c = 0; c < depth_; ++c) {
      const int32_t difference = x[c] - largest;
      if (difference <= lowest || difference < difference_low_) {
        y[c] = static_cast<T>(range.low);
        continue;
      }
      // From Q5.26 to steps of 1/16.
      const int32_t code = RoundingShiftRight(WrapSubtract(differences_[-difference], log_sum), 31 - 5 - 4);
      y[c] = static_cast<T>(range.Clamp(int64_t{code} + range.high));
    }
  }
}

void IntegerLogSoftmax::Compute(int64_t rows, const void* x, void* y) const {
  if (depth_ == 0) return;
  if (type_ == CodeType::kInt8) {
    ComputeRows(rows, static_cast<const int8_t*>(x), static_cast<int8_t*>(y));
  } else {
    ComputeRows(rows, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y));
  }
}

absl::StatusOr<IntegerL2Normalization> IntegerL2Normalization::Make(const Affine& input, const Affine& output,
                                                                    int64_t depth) {
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  if (input.type != output.type || (input.type != CodeType::kInt8 && input.type != CodeType::kUint8)) {
    return absl::InvalidArgumentError(
        absl::StrCat("L2_NORMALIZATION has no integer form from ", NameOf(input.type), " to ", NameOf(output.type)));
  }
  PF_RETURN_IF_ERROR(RequireOutput(output, 1.0f / 128, output.type == CodeType::kInt8 ? 0 : 128));
  PF_RETURN_IF_ERROR(CheckProduct({depth}));
  // The sum of squares of differences up to 255 stays below 2^31.
  if (depth > (std::numeric_limits<int32_t>::max() / (255 * 255))) {
    return absl::UnimplementedError(absl::StrCat("rows of ", depth, " codes overflow the sum of squares"));
  }
  IntegerL2Normalization made;
  made.type_ = input.type;
  made.zero_point_ = input.zero_point;
  made.depth_ = depth;
  return made;
}

template <typename T>
void IntegerL2Normalization::ComputeRows(int64_t rows, const T* x, T* y) const {
  constexpr int kOutputBits = 7;  // The output counts in 1/128.
  constexpr bool kIsSigned = std::numeric_limits<T>::is_signed;
  for (int64_t row = 0; row < rows; ++row, x += depth_, y += depth_) {
    int32_t sum = 0;
    for (int64_t c = 0; c < depth_; ++c) sum += (x[c] - zero_point_) * (x[c] - zero_point_);
    FixedMultiplier inverse = InverseSquareRoot(sum);
    // int8 scales by the multiplier, uint8 the element.
    if (kIsSigned) inverse.shift += kOutputBits;
    for (int64_t c = 0; c < depth_; ++c) {
      const int32_t value = x[c] - zero_point_;
      const int32_t code = MultiplyTwice(kIsSigned ? value : value * (1 << kOutputBits), inverse);
      y[c] = static_cast<T>(std::clamp<int32_t>(code + (kIsSigned ? 0 : 128), std::numeric_limits<T>::min(),
                                                std::numeric_limits<T>::max()));
    }
  }
}

void IntegerL2Normalization::Compute(int64_t rows, const void* x, void* y) const {
  if (type_ == CodeType::kInt8) {
    ComputeRows(rows, static_cast<const int8_t*>(x), static_cast<int8_t*>(y));
  } else {
    ComputeRows(rows, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y));
  }
}

}  // namespace permafrost
