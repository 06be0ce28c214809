// Implements hybrid operators.
#include "runtime_check/kernels/integer/integer_hybrid.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/integer/integer_loops.h"

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
#include <immintrin.h>
#endif

namespace permafrost {
namespace {

// The range of floats and 0.
struct FloatRange {
  float lowest, highest;
};

// Converts the sums of products of rows to floats.
struct SumsToFloats {
  const RowScale* rows;  // The scale of each row, `row_step` apart: 0 or 1.
  int64_t row_step;
  const int32_t* weight_sums;  // By column, as all further pointers.
  const float* scales;
  const float* bias;  // May be null.
  float low, high;    // The range of the activation.
};

// Sums of `count` rows, and where their floats go.
struct SumRows {
  int64_t count;
  const int32_t* sums;
  int64_t sum_step;
  float* y;
  int64_t y_step;
};

// The range of an activation's results. A NaN stays NaN.
struct FloatLimits {
  explicit FloatLimits(FusedActivation activation) {
    if (activation == FusedActivation::kNone) return;
    low = activation == FusedActivation::kReluN1To1 ? -1.0f : 0.0f;
    high = activation == FusedActivation::kRelu ? INFINITY : activation == FusedActivation::kRelu6 ? 6.0f : 1.0f;
  }
  float low = -INFINITY, high = INFINITY;
};

#if defined(__x86_64__) && !defined(PERMAFROST_WITHOUT_AVX512)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw")
// The loops below for AVX-512, with the same results.
namespace avx512 {

constexpr bool kIsCompiled = true;

__mmask16 FirstLanes(int64_t count) { return count >= 16 ? 0xffff : static_cast<__mmask16>((1u << count) - 1); }

// Returns zero + x, rounded half away from zero before the sum, in [low, 127].
struct Quantization {
  Quantization(int32_t zero_point, float inverse_scale, int32_t low)
      : inverse(_mm512_set1_ps(inverse_scale)),
        least(_mm512_set1_ps(static_cast<float>(low - zero_point))),
        most(_mm512_set1_ps(static_cast<float>(127 - zero_point))),
        of_nan(_mm512_set1_ps(static_cast<float>(-zero_point))),
        zero(_mm512_set1_epi32(zero_point)) {}
  __m512i operator()(__m512 x) const {
    const __m512 product = _mm512_mul_ps(x, inverse);
    __m512 code = _mm512_mask_mov_ps(of_nan, _mm512_cmp_ps_mask(product, product, _CMP_ORD_Q), product);
    code = _mm512_min_ps(_mm512_max_ps(code, least), most);
    // Rounds numbers below 2^22 half away from zero: the sum with the largest float below a half reaches the next
    // integer from a half on.
    const __m512 sign = _mm512_and_ps(code, _mm512_set1_ps(-0.0f));
    const __m512 half = _mm512_or_ps(sign, _mm512_set1_ps(0x1.fffffep-2f));
    return _mm512_add_epi32(_mm512_cvttps_epi32(_mm512_add_ps(code, half)), zero);
  }
  __m512 inverse, least, most, of_nan;
  __m512i zero;
};

void QuantizeFloats(int64_t count, const float* x, int32_t zero, float inverse, int32_t low, int8_t* codes) {
  const Quantization quantize(zero, inverse, low);
  // Stores of bytes with a mask take several times as long as others.
  for (; count >= 16; count -= 16, x += 16, codes += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(quantize(_mm512_loadu_ps(x))));
  }
  if (count == 0) return;
  const __mmask16 mask = FirstLanes(count);
  _mm512_mask_cvtepi32_storeu_epi8(codes, mask, quantize(_mm512_maskz_loadu_ps(mask, x)));
}

// The results of FinishSums for 16 columns of all rows, or for those of a mask.
template <bool kIsWhole>
PF_INLINE inline void FinishColumns(const SumsToFloats& to, const SumRows& rows, __mmask16 mask, int64_t c) {
  const auto integers = [mask](const int32_t* p)
                            PF_INLINE { return kIsWhole ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(mask, p); };
  const auto floats = [mask](const float* p)
                          PF_INLINE { return kIsWhole ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(mask, p); };
  const __m512i weight_sums = integers(to.weight_sums + c);
  const __m512 scales = floats(to.scales + c), low = _mm512_set1_ps(to.low), high = _mm512_set1_ps(to.high);
  const __m512 bias = to.bias == nullptr ? _mm512_setzero_ps() : floats(to.bias + c);
  const RowScale* row = to.rows;
  const int32_t* sums = rows.sums + c;
  float* y = rows.y + c;
  for (int64_t r = 0; r < rows.count; ++r, row += to.row_step, sums += rows.sum_step, y += rows.y_step) {
    const __m512i shift = _mm512_mullo_epi32(_mm512_set1_epi32(row->zero_point), weight_sums);
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(integers(sums), shift));
    // The compiler would fuse the operators of a product and a sum, which rounds once.
    const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(row->scale), scales);
    const __m512 product = _mm512_mul_round_ps(sum, scale, _MM_FROUND_CUR_DIRECTION);
    // These return the second operand if one is NaN.
    const __m512 value = _mm512_min_ps(high, _mm512_max_ps(low, _mm512_add_ps(bias, product)));
    if (kIsWhole) {
      _mm512_storeu_ps(y, value);
    } else {
      _mm512_mask_storeu_ps(y, mask, value);
    }
  }
}

void Finish(int64_t columns, const SumsToFloats& to, const SumRows& rows) {
  int64_t c = 0;
  for (; c + 16 <= columns; c += 16) FinishColumns<true>(to, rows, 0xffff, c);
  if (c < columns) FinishColumns<false>(to, rows, FirstLanes(columns - c), c);
}

FloatRange RangeOf(int64_t count, const float* x) {
  __m512 low[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, high[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (; count > 0; count -= 32, x += 32) {
    for (int i = 0; i < 2 && count > 16 * i; ++i) {
      const __m512 values = _mm512_maskz_loadu_ps(FirstLanes(count - 16 * i), x + 16 * i);
      // These return the second operand if one is NaN.
      low[i] = _mm512_min_ps(values, low[i]);
      high[i] = _mm512_max_ps(values, high[i]);
    }
  }
  return {_mm512_reduce_min_ps(_mm512_min_ps(low[0], low[1])), _mm512_reduce_max_ps(_mm512_max_ps(high[0], high[1]))};
}

}  // namespace avx512
#pragma GCC pop_options
#else
namespace avx512 {
constexpr bool kIsCompiled = false;
void QuantizeFloats(int64_t, const float*, int32_t, float, int32_t, int8_t*) {}
void Finish(int64_t, const SumsToFloats&, const SumRows&) {}
FloatRange RangeOf(int64_t, const float*) { return {0, 0}; }
}  // namespace avx512
#endif

// Returns whether the loops for AVX-512 are in the build, and the processor runs them.
bool HasAvx512() {
  static const bool has = avx512::kIsCompiled && SupportsByteDotProducts();
  return has;
}

// Writes zero + (x * inverse), rounded half away from zero before the sum, in [low, 127]. NaN has code 0.
PF_INLINE inline void QuantizeFloats(int64_t count, const float* x, int32_t zero, float inverse, int32_t low,
                                     int8_t* codes) {
  const auto least = static_cast<float>(low - zero), most = static_cast<float>(127 - zero);
  const auto of_nan = static_cast<float>(-zero);
  for (int64_t i = 0; i < count; ++i) {
    const float product = x[i] * inverse;
    const float limited = std::min(std::max(product == product ? product : of_nan, least), most);
    const auto whole = static_cast<int32_t>(limited);
    const float rest = limited - static_cast<float>(whole);  // Exact.
    codes[i] = static_cast<int8_t>(zero + whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0));
  }
}

// The function's parameters are not in memory that a store of a code could change, as the members of a lambda are.
void QuantizeFloatRow(int64_t count, const float* x, int32_t zero, float inverse, int32_t low, int8_t* codes) {
  if (HasAvx512()) return avx512::QuantizeFloats(count, x, zero, inverse, low, codes);
  Multiversion([&]() PF_INLINE { QuantizeFloats(count, x, zero, inverse, low, codes); });
}

// Returns the range of `count` floats and 0; NaN is ignored.
PF_INLINE inline FloatRange FindRange(int64_t count, const float* x) {
  constexpr int64_t kParts = 32;  // Independent elements, which are compared at once.
  float low[kParts] = {}, high[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (int64_t j = 0; j < kParts; ++j) {
      low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
      high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    }
  }
  FloatRange range = {0, 0};
  for (; i < count; ++i) range = {std::min(range.lowest, x[i]), std::max(range.highest, x[i])};
  for (int64_t j = 0; j < kParts; ++j) range = {std::min(range.lowest, low[j]), std::max(range.highest, high[j])};
  return range;
}
FloatRange RangeOf(int64_t count, const float* x) {
  if (HasAvx512()) return avx512::RangeOf(count, x);
  FloatRange range;
  Multiversion([&]() PF_INLINE { range = FindRange(count, x); });
  return range;
}

// y[c] = activation(bias[c] + (sums[c] - zero point * weight_sums[c]) * (row scale * scales[c])), for each row.
PF_INLINE inline void FinishSums(int64_t columns, const SumsToFloats& to, const SumRows& rows) {
  for (int64_t r = 0; r < rows.count; ++r) {
    const RowScale row = to.rows[r * to.row_step];
    const int32_t* sums = rows.sums + r * rows.sum_step;
    float* y = rows.y + r * rows.y_step;
    for (int64_t c = 0; c < columns; ++c) {
      const int32_t sum = WrapSubtract(sums[c], WrapMultiply(row.zero_point, to.weight_sums[c]));
      const float value =
          (to.bias == nullptr ? 0.0f : to.bias[c]) + static_cast<float>(sum) * (row.scale * to.scales[c]);
      y[c] = std::min(std::max(value, to.low), to.high);
    }
  }
}
void FinishRows(int64_t columns, const SumsToFloats& to, const SumRows& rows) {
  if (HasAvx512()) return avx512::Finish(columns, to, rows);
  Multiversion([&]() PF_INLINE { FinishSums(columns, to, rows); });
}

// The weighting of a product of which only the sums are used.
IntegerWeighting PlainWeighting() {
  static constexpr float kOne = 1;
  IntegerWeighting weighting;
  weighting.input = weighting.output = {CodeType::kInt8, 1, 0};
  weighting.filter_scales = {&kOne, 1};
  weighting.rounding = Rounding::kOnce;
  return weighting;
}

}  // namespace

RowScale QuantizeRowSymmetric(int64_t count, const float* x, int8_t* codes) {
  const FloatRange range = RangeOf(count, x);
  const float largest = std::max(-range.lowest, range.highest);
  if (largest == 0) {
    std::fill_n(codes, count, int8_t{0});
    return {1.0f, 0};
  }
  const float inverse = 127.0f / largest;
  QuantizeFloatRow(count, x, 0, inverse, -127, codes);
  return {largest / 127.0f, 0};
}

RowScale QuantizeRowAsymmetric(int64_t count, const float* x, int8_t* codes) {
  const auto [lowest, highest] = RangeOf(count, x);
  if (lowest == highest) {
    std::fill_n(codes, count, int8_t{0});
    return {1.0f, 0};
  }
  const double low = lowest, high = highest, scale = (high - low) / 255.0;
  const double low_code = low / scale, high_code = high / scale;
  // The zero point follows from the end of the range with the smaller error.
  const bool is_low = 128 + std::abs(low_code) < 127 + std::abs(high_code);
  const double zero = is_low ? -128 - low_code : 127 - high_code;
  // Rounded half away from zero; the difference of a double to its integer part is exact.
  const double limited = zero > 127 ? 127 : zero < -128 ? -128 : zero == zero ? zero : 0;
  const auto whole = static_cast<int32_t>(limited);
  const double rest = limited - whole;
  const RowScale row = {static_cast<float>(scale), whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0)};
  QuantizeFloatRow(count, x, row.zero_point, 1.0f / row.scale, -128, codes);
  return row;
}

void ClampFloats(FusedActivation activation, int64_t count, float* y) {
  if (activation == FusedActivation::kNone) return;
  const FloatLimits range(activation);
  Multiversion([&]() PF_INLINE {
    for (int64_t i = 0; i < count; ++i) y[i] = std::min(std::max(y[i], range.low), range.high);
  });
}

absl::StatusOr<HybridDense> HybridDense::Make(int64_t depth, int64_t columns, absl::Span<const float> filter_scales,
                                              bool asymmetric, FusedActivation activation) {
  PF_RETURN_IF_ERROR(CheckNumElements({depth, columns}));
  PF_RETURN_IF_ERROR(CheckScales(filter_scales, columns, "filter"));
  HybridDense made;
  made.depth_ = depth;
  made.columns_ = columns;
  made.scales_.assign(static_cast<size_t>(columns), filter_scales[0]);
  if (filter_scales.size() > 1) made.scales_.assign(filter_scales.begin(), filter_scales.end());
  made.asymmetric_ = asymmetric;
  made.activation_ = activation;
  IntegerProduct::Depth layout;
  layout.inputs = depth;
  layout.input_step = 1;
  PF_ASSIGN_OR_RETURN(made.product_, IntegerProduct::Make(PlainWeighting(), layout, columns, depth));
  made.sums_offset_ = AlignScratch(made.product_.packed_size());
  made.packed_size_ = made.sums_offset_ + columns * 4;
  // A block of rows stays in half of the L1 cache (32 KB).
  made.block_rows_ = std::clamp<int64_t>((16 << 10) / std::max<int64_t>(depth, 1), 1, 4 * kMostTileRows);
  made.scratch_size_ = AlignScratch(made.block_rows_ * depth) +
                       AlignScratch(made.block_rows_ * static_cast<int64_t>(sizeof(RowScale))) +
                       made.product_.scratch_size();
  return made;
}

void HybridDense::Pack(const int8_t* filter, char* packed) const {
  product_.Pack(filter, nullptr, packed);
  auto* sums = reinterpret_cast<int32_t*>(packed + sums_offset_);
  for (int64_t c = 0; c < columns_; ++c) {
    uint32_t sum = 0;
    for (int64_t k = 0; k < depth_; ++k) sum += static_cast<uint32_t>(int32_t{filter[c * depth_ + k]});
    sums[c] = static_cast<int32_t>(sum);
  }
}

void HybridDense::Compute(const float* input, const char* packed, const float* bias, int64_t first, int64_t last,
                          char* scratch, float* output) const {
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  auto* scales = reinterpret_cast<RowScale*>(scratch + AlignScratch(block_rows_ * depth_));
  char* rest = reinterpret_cast<char*>(scales) + AlignScratch(block_rows_ * static_cast<int64_t>(sizeof(RowScale)));
  const auto* weight_sums = reinterpret_cast<const int32_t*>(packed + sums_offset_);
  const FloatLimits range(activation_);
  for (int64_t begin = first; begin < last; begin += block_rows_) {
    const int64_t rows = std::min(block_rows_, last - begin);
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = input + (begin + r) * depth_;
      scales[r] = asymmetric_ ? QuantizeRowAsymmetric(depth_, x, codes + r * depth_)
                              : QuantizeRowSymmetric(depth_, x, codes + r * depth_);
    }
    product_.ComputeSums(
        codes, packed, 0, rows, rest,
        [&](int64_t row, int64_t count, int64_t channel, int64_t columns, int64_t stride, const int32_t* sums) {
          const SumsToFloats to = {scales + row,
                                   1,
                                   weight_sums + channel,
                                   scales_.data() + channel,
                                   bias == nullptr ? nullptr : bias + channel,
                                   range.low,
                                   range.high};
          FinishRows(columns, to, {count, sums, stride, output + (begin + row) * columns_ + channel, columns_});
        });
  }
}

absl::StatusOr<HybridConvolution> HybridConvolution::Make(const ConvolutionSizes& sizes, bool is_depthwise,
                                                          const FilterStrides& filter,
                                                          absl::Span<const float> filter_scales, bool asymmetric,
                                                          FusedActivation activation) {
  const WindowAxis &y = sizes.window.y, &x = sizes.window.x;
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, y.input, x.input, sizes.input_channels}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, y.output, x.output, sizes.output_channels}));
  PF_RETURN_IF_ERROR(CheckNumElements({y.taps, x.taps, sizes.input_channels, sizes.output_channels}));
  for (const WindowAxis* axis : {&y, &x}) {
    // 2^31: products of a position and a stride fit in int64_t.
    constexpr int64_t kMost = int64_t{1} << 31;
    if (axis->taps < 1 || axis->stride < 1 || axis->stride > kMost || axis->dilation < 1 || axis->dilation > kMost ||
        axis->pad_before < -kMost || axis->pad_before > kMost) {
      return absl::InvalidArgumentError("the window has an impossible size");
    }
  }
  const int64_t groups = is_depthwise ? sizes.input_channels : sizes.groups;
  if (sizes.input_channels < 1 || sizes.output_channels < 1 || groups < 1 || sizes.input_channels % groups != 0 ||
      sizes.output_channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a convolution of ", sizes.input_channels, " to ",
                                                   sizes.output_channels, " channels in ", groups,
                                                   " groups is impossible"));
  }
  PF_RETURN_IF_ERROR(CheckScales(filter_scales, sizes.output_channels, "filter"));
  HybridConvolution made;
  made.sizes_ = sizes;
  made.sizes_.groups = groups;
  made.filter_ = filter;
  made.is_depthwise_ = is_depthwise;
  made.scales_.assign(static_cast<size_t>(sizes.output_channels), filter_scales[0]);
  if (filter_scales.size() > 1) made.scales_.assign(filter_scales.begin(), filter_scales.end());
  made.asymmetric_ = asymmetric || filter_scales.size() > 1;
  made.activation_ = activation;
  made.image_size_ = y.input * x.input * sizes.input_channels;
  made.output_size_ = y.output * x.output * sizes.output_channels;
  if (is_depthwise) {
    made.packed_size_ = y.taps * x.taps * sizes.output_channels;
    made.scratch_size_ = sizes.output_channels * 4;
    made.rows_ = y.output;
    return made;
  }
  ConvolutionSizes image = made.sizes_;
  image.batch = 1;
  PF_ASSIGN_OR_RETURN(made.convolution_, IntegerConvolution::Make(PlainWeighting(), image, filter));
  made.sums_offset_ = AlignScratch(made.convolution_.packed_size());
  made.packed_size_ = made.sums_offset_ + sizes.output_channels * 4;
  made.scratch_size_ = made.convolution_.scratch_size();
  made.rows_ = made.convolution_.rows();
  return made;
}

void HybridConvolution::Pack(const int8_t* filter, char* packed) const {
  if (is_depthwise_) {
    std::memcpy(packed, filter, static_cast<size_t>(packed_size_));
    return;
  }
  convolution_.Pack(filter, nullptr, packed);
  auto* sums = reinterpret_cast<int32_t*>(packed + sums_offset_);
  for (int64_t c = 0; c < sizes_.output_channels; ++c) {
    uint32_t sum = 0;
    for (int64_t ty = 0; ty < sizes_.window.y.taps; ++ty) {
      for (int64_t tx = 0; tx < sizes_.window.x.taps; ++tx) {
        const int8_t* weights = filter + c * filter_.output + ty * filter_.row + tx * filter_.column;
        for (int64_t i = 0; i < sizes_.input_channels / sizes_.groups; ++i) {
          sum += static_cast<uint32_t>(int32_t{weights[i * filter_.input]});
        }
      }
    }
    sums[c] = static_cast<int32_t>(sum);
  }
}

RowScale HybridConvolution::Quantize(const float* image, int8_t* codes) const {
  return asymmetric_ ? QuantizeRowAsymmetric(image_size_, image, codes)
                     : QuantizeRowSymmetric(image_size_, image, codes);
}

PF_INLINE inline void HybridConvolution::Finish(const int32_t* sums, RowScale scale, const float* bias, int64_t channel,
                                                int64_t count, float* y) const {
  for (int64_t c = 0; c < count; ++c) {
    y[c] = static_cast<float>(sums[c]) * (scales_[channel + c] * scale.scale) +
           (bias == nullptr ? 0.0f : bias[channel + c]);
  }
}

void HybridConvolution::ComputeDepthwise(const int8_t* codes, RowScale scale, const int8_t* filter, const float* bias,
                                         int64_t first, int64_t last, int32_t* sums, float* output) const {
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t inputs = sizes_.input_channels, channels = sizes_.output_channels, multiplier = channels / inputs;
  Multiversion([&]() PF_INLINE {
    for (int64_t line = first; line < last; ++line) {
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      for (int64_t column = 0; column < x.output; ++column) {
        x.TapsInside(column, &x_begin, &x_end);
        std::fill_n(sums, channels, 0);
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            const int64_t pixel = (y.First(line) + ty * y.dilation) * x.input + x.First(column) + tx * x.dilation;
            const int8_t *from = codes + pixel * inputs, *weights = filter + (ty * x.taps + tx) * channels;
            if (multiplier == 1) {
              for (int64_t c = 0; c < channels; ++c) {
                sums[c] = WrapAdd(sums[c], (from[c] - scale.zero_point) * weights[c]);
              }
            } else {
              for (int64_t c = 0; c < channels; ++c) {
                sums[c] = WrapAdd(sums[c], (from[c / multiplier] - scale.zero_point) * weights[c]);
              }
            }
          }
        }
        Finish(sums, scale, bias, 0, channels, output + (line * x.output + column) * channels);
      }
    }
  });
  ClampFloats(activation_, (last - first) * x.output * channels, output + first * x.output * channels);
}

void HybridConvolution::Compute(const int8_t* codes, RowScale scale, const char* packed, const float* bias,
                                int64_t first, int64_t last, char* scratch, float* output) const {
  if (is_depthwise_) {
    return ComputeDepthwise(codes, scale, reinterpret_cast<const int8_t*>(packed), bias, first, last,
                            reinterpret_cast<int32_t*>(scratch), output);
  }
  const int64_t channels = sizes_.output_channels;
  const auto* weight_sums = reinterpret_cast<const int32_t*>(packed + sums_offset_);
  const FloatLimits range(activation_);
  convolution_.ComputeSums(
      codes, static_cast<int8_t>(scale.zero_point), packed, first, last, scratch,
      [&](int64_t row, int64_t count, int64_t channel, int64_t columns, int64_t stride, const int32_t* sums) {
        const SumsToFloats to = {&scale,
                                 0,
                                 weight_sums + channel,
                                 scales_.data() + channel,
                                 bias == nullptr ? nullptr : bias + channel,
                                 range.low,
                                 range.high};
        FinishRows(columns, to, {count, sums, stride, output + row * channels + channel, channels});
      });
}

absl::StatusOr<HybridMatrixProduct> HybridMatrixProduct::Make(const IntegerMatrixProduct::Sizes& sizes,
                                                              float right_scale, bool asymmetric) {
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.rows, sizes.depth}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.columns, sizes.depth}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.columns, sizes.rows}));
  PF_RETURN_IF_ERROR(CheckScales({&right_scale, 1}, 1, "right matrix"));
  HybridMatrixProduct made;
  made.sizes_ = sizes;
  made.right_scale_ = right_scale;
  made.asymmetric_ = asymmetric;
  made.values_offset_ = AlignScratch(sizes.depth);
  made.scratch_size_ = made.values_offset_ + AlignScratch(sizes.depth * 4);
  return made;
}

void HybridMatrixProduct::Compute(const float* left, const int8_t* right, int64_t first, int64_t last, char* scratch,
                                  float* output) const {
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  auto* values = reinterpret_cast<float*>(scratch + values_offset_);
  const int64_t depth = sizes_.depth, columns = sizes_.columns;
  const int64_t depth_step = sizes_.transpose_right ? 1 : columns, column_step = sizes_.transpose_right ? depth : 1;
  for (int64_t row = first; row < last; ++row) {
    const float* x = left + row * depth;
    if (sizes_.transpose_left) {
      for (int64_t k = 0; k < depth; ++k) values[k] = left[k * sizes_.rows + row];
      x = values;
    }
    const RowScale scale = asymmetric_ ? QuantizeRowAsymmetric(depth, x, codes) : QuantizeRowSymmetric(depth, x, codes);
    Multiversion([&]() PF_INLINE {
      for (int64_t c = 0; c < columns; ++c) {
        const int8_t* weights = right + c * column_step;
        uint32_t sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += static_cast<uint32_t>((codes[k] - scale.zero_point) * weights[k * depth_step]);
        }
        output[row * columns + c] = static_cast<float>(static_cast<int32_t>(sum)) * (scale.scale * right_scale_);
      }
    });
  }
}

}  // namespace permafrost
