// Implements hybrid operators.
#include "runtime_check/kernels/integer/integer_hybrid.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// The code of x / scale, halves away from zero, in [low, 127]. NaN has code 0.
int8_t CodeOf(float code, int32_t low) {
  const float rounded = std::round(code);
  if (!(rounded > static_cast<float>(low))) return static_cast<int8_t>(std::isnan(rounded) ? 0 : low);
  return rounded >= 127.0f ? int8_t{127} : static_cast<int8_t>(rounded);
}

// Sum of products of two rows of codes; 2^31 is not reached below 2^16 products, and sums wrap around beyond.
PF_INLINE inline int32_t Dot(int64_t count, const int8_t* a, const int8_t* b) {
  int32_t sum = 0;
  constexpr int64_t kPart = 1 << 16;
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t end = std::min(count, begin + kPart);
    int32_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += static_cast<int16_t>(a[i]) * static_cast<int16_t>(b[i]);
    sum = WrapAdd(sum, part);
  }
  return sum;
}

}  // namespace

RowScale QuantizeRowSymmetric(int64_t count, const float* x, int8_t* codes) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  if (largest == 0) {
    std::fill_n(codes, count, int8_t{0});
    return {1.0f, 0};
  }
  const float inverse = 127.0f / largest;
  for (int64_t i = 0; i < count; ++i) codes[i] = CodeOf(x[i] * inverse, -127);
  return {largest / 127.0f, 0};
}

RowScale QuantizeRowAsymmetric(int64_t count, const float* x, int8_t* codes) {
  float lowest = 0, highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    lowest = std::min(lowest, x[i]);
    highest = std::max(highest, x[i]);
  }
  if (lowest == highest) {
    std::fill_n(codes, count, int8_t{0});
    return {1.0f, 0};
  }
  const double low = lowest, high = highest, scale = (high - low) / 255.0;
  // The zero point follows from the end of the range with the smaller error.
  const double from_low = -128 - low / scale, from_high = 127 - high / scale;
  const bool is_low = 128 + std::abs(low / scale) < 127 + std::abs(high / scale);
  const double zero = is_low ? from_low : from_high;
  RowScale row = {static_cast<float>(scale), 0};
  row.zero_point = static_cast<int32_t>(std::clamp<int64_t>(RoundAway(zero), -128, 127));
  const float inverse = 1.0f / row.scale;
  for (int64_t i = 0; i < count; ++i) codes[i] = CodeOf(static_cast<float>(row.zero_point) + x[i] * inverse, -128);
  return row;
}

void ClampFloats(FusedActivation activation, int64_t count, float* y) {
  if (activation == FusedActivation::kNone) return;
  const float low = activation == FusedActivation::kReluN1To1 ? -1.0f : 0.0f;
  const float high = activation == FusedActivation::kRelu    ? INFINITY
                     : activation == FusedActivation::kRelu6 ? 6.0f
                                                             : 1.0f;
  for (int64_t i = 0; i < count; ++i) y[i] = std::min(std::max(y[i], low), high);
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
  made.scratch_size_ = depth;
  return made;
}

void HybridDense::Compute(const float* input, const int8_t* filter, const float* bias, int64_t first, int64_t last,
                          char* scratch, float* output) const {
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  for (int64_t row = first; row < last; ++row) {
    const float* x = input + row * depth_;
    float* y = output + row * columns_;
    const RowScale scale =
        asymmetric_ ? QuantizeRowAsymmetric(depth_, x, codes) : QuantizeRowSymmetric(depth_, x, codes);
    Multiversion([&]() PF_INLINE {
      for (int64_t c = 0; c < columns_; ++c) {
        const int8_t* weights = filter + c * depth_;
        int32_t sum = Dot(depth_, codes, weights);
        if (scale.zero_point != 0) {
          int32_t weight_sum = 0;
          for (int64_t k = 0; k < depth_; ++k) weight_sum += weights[k];
          sum = WrapSubtract(sum, WrapMultiply(scale.zero_point, weight_sum));
        }
        y[c] = (bias == nullptr ? 0.0f : bias[c]) + static_cast<float>(sum) * (scale.scale * scales_[c]);
      }
    });
    ClampFloats(activation_, columns_, y);
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
  if (is_depthwise) made.filter_ = {1, x.taps * sizes.output_channels, sizes.output_channels, 0};
  made.scales_.assign(static_cast<size_t>(sizes.output_channels), filter_scales[0]);
  if (filter_scales.size() > 1) made.scales_.assign(filter_scales.begin(), filter_scales.end());
  made.asymmetric_ = asymmetric || filter_scales.size() > 1;
  made.activation_ = activation;
  made.scratch_size_ = y.input * x.input * sizes.input_channels;
  return made;
}

void HybridConvolution::Compute(const float* input, const int8_t* filter, const float* bias, int64_t first,
                                int64_t last, char* scratch, float* output) const {
  const WindowAxis &y = sizes_.window.y, &x = sizes_.window.x;
  const int64_t size = y.input * x.input * sizes_.input_channels, channels = sizes_.output_channels;
  const int64_t inputs = sizes_.input_channels / sizes_.groups, columns = channels / sizes_.groups;
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  for (int64_t image = first; image < last; ++image) {
    const float* values = input + image * size;
    const RowScale scale =
        asymmetric_ ? QuantizeRowAsymmetric(size, values, codes) : QuantizeRowSymmetric(size, values, codes);
    for (int64_t line = 0; line < y.output; ++line) {
      int64_t y_begin, y_end;
      y.TapsInside(line, &y_begin, &y_end);
      for (int64_t column = 0; column < x.output; ++column) {
        int64_t x_begin, x_end;
        x.TapsInside(column, &x_begin, &x_end);
        float* to = output + ((image * y.output + line) * x.output + column) * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t group = c / columns;
          uint32_t sum = 0;
          for (int64_t ty = y_begin; ty < y_end; ++ty) {
            for (int64_t tx = x_begin; tx < x_end; ++tx) {
              const int64_t pixel = (y.First(line) + ty * y.dilation) * x.input + x.First(column) + tx * x.dilation;
              const int8_t* from = codes + pixel * sizes_.input_channels + group * inputs;
              const int8_t* weights = filter + c * filter_.output + ty * filter_.row + tx * filter_.column;
              for (int64_t i = 0; i < inputs; ++i) {
                sum += static_cast<uint32_t>((from[i] - scale.zero_point) * weights[i * filter_.input]);
              }
            }
          }
          to[c] = static_cast<float>(static_cast<int32_t>(sum)) * (scales_[c] * scale.scale) +
                  (bias == nullptr ? 0.0f : bias[c]);
        }
        ClampFloats(activation_, channels, to);
      }
    }
  }
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
    for (int64_t c = 0; c < columns; ++c) {
      const int8_t* weights = right + c * column_step;
      uint32_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += static_cast<uint32_t>((codes[k] - scale.zero_point) * weights[k * depth_step]);
      }
      output[row * columns + c] = static_cast<float>(static_cast<int32_t>(sum)) * (scale.scale * right_scale_);
    }
  }
}

}  // namespace permafrost
