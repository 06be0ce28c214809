// ResizeBilinear, ResizeNearestNeighbor and QuantizedResizeBilinear.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/quantized_ranges.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace {

absl::Status PrepareBilinear(PrepareContext* context) { return PrepareResize(context, BilinearTaps); }
absl::Status PrepareNearest(PrepareContext* context) { return PrepareResize(context, NearestTaps); }

// Calls line(image, y tap, first output element) for each line of the output; the unit is elements, not bytes.
template <typename Line>
void ForEachLine(ComputeContext* context, const ResizeState<Tap>& state, Line line) {
  const int64_t lines = static_cast<int64_t>(state.y.size());
  const int64_t line_elements = static_cast<int64_t>(state.x.size()) * state.channels;
  if (lines == 0) return;
  context->threads().ParallelFor(state.batch * lines, 1 + (8 << 10) / line_elements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) line(i / lines, state.y[i % lines], i * line_elements);
  });
}

template <typename T>
void Bilinear(ComputeContext* context) {
  const auto& state = context->state<ResizeState<Tap>>();
  const T* input = context->input<T>(0);
  float* output = context->output<float>(0);
  const int64_t channels = state.channels;
  ForEachLine(context, state, [&](int64_t image, const Tap& y, int64_t first) {
    const T* top = input + (image * state.height + y.lower) * state.width * channels;
    const T* bottom = input + (image * state.height + y.upper) * state.width * channels;
    InterpolateLine(top, bottom, y.fraction, absl::MakeConstSpan(state.x), channels, output + first);
  });
}

absl::Status ComputeBilinear(ComputeContext* context) {
  DispatchOn<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>(
      context->input_at(0).dtype, [&](auto tag) { Bilinear<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

absl::Status ComputeNearest(ComputeContext* context) {
  const auto& state = context->state<ResizeState<Tap>>();
  const int64_t pixel_bytes = state.channels * static_cast<int64_t>(SizeOf(context->input_at(0).dtype));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  ForEachLine(context, state, [&](int64_t image, const Tap& y, int64_t first) {
    const char* line = input + (image * state.height + y.lower) * state.width * pixel_bytes;
    char* out = output + first / state.channels * pixel_bytes;
    for (const Tap& x : state.x) {
      std::memcpy(out, line + x.lower * pixel_bytes, pixel_bytes);
      out += pixel_bytes;
    }
  });
  return absl::OkStatus();
}

absl::Status PrepareQuantizedBilinear(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 2));
  SetRangeOutputShapes(context);
  return PrepareBilinear(context);
}

// Interpolates codes as integers. Fractions have kBits bits; all divisions round towards zero:
//
//   upper = top_left * 2^kBits + (top_right - top_left) * x, and lower in the same way
//   output = (upper + (lower - upper) / 2^kBits * y + 2^(kBits - 1)) / 2^kBits
//
// As in TensorFlow, codes beyond 2^24 lose the bits that a float cannot represent, unless the size does not change.
// There is no overflow: with codes of b bits, no term exceeds 2^(b + kBits + 1), which is 2^16 or 2^63.
template <typename Code, int kBits>
void QuantizedBilinear(ComputeContext* context) {
  const auto& state = context->state<ResizeState<Tap>>();
  const auto* input = context->input_bits<Code>(0);
  auto* output = context->output_bits<Code>(0);
  constexpr int64_t kOne = int64_t{1} << kBits;
  const int64_t channels = state.channels;
  if (state.y.empty() || state.x.empty()) return;
  if (static_cast<int64_t>(state.y.size()) == state.height && static_cast<int64_t>(state.x.size()) == state.width) {
    // Division towards zero would change negative codes.
    std::memcpy(output, input, state.batch * state.height * state.width * channels * sizeof(Code));
    return;
  }
  ForEachLine(context, state, [&](int64_t image, const Tap& y, int64_t first) {
    const Code* top = input + (image * state.height + y.lower) * state.width * channels;
    const Code* bottom = input + (image * state.height + y.upper) * state.width * channels;
    const auto y_fraction = static_cast<int64_t>(y.fraction * static_cast<float>(kOne));
    Code* out = output + first;
    for (const Tap& x : state.x) {
      const Code *top_left = top + x.lower * channels, *top_right = top + x.upper * channels;
      const Code *bottom_left = bottom + x.lower * channels, *bottom_right = bottom + x.upper * channels;
      const auto x_fraction = static_cast<int64_t>(x.fraction * static_cast<float>(kOne));
      const auto value = [](Code code) { return static_cast<int64_t>(static_cast<float>(code)); };
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t a = value(top_left[c]), b = value(bottom_left[c]);
        const int64_t upper = a * kOne + (value(top_right[c]) - a) * x_fraction;
        const int64_t lower = b * kOne + (value(bottom_right[c]) - b) * x_fraction;
        *out++ = static_cast<Code>((upper + (lower - upper) / kOne * y_fraction + kOne / 2) / kOne);
      }
    }
  });
}

absl::Status ComputeQuantizedBilinear(ComputeContext* context) {
  SetRangeOutput(context, RangeInput(*context, 2));
  const DType dtype = context->input_at(0).dtype;
  if (dtype == DType::kFloat) {
    Bilinear<float>(context);
  } else if (dtype == DType::kQUint8) {
    QuantizedBilinear<uint8_t, 7>(context);
  } else {
    QuantizedBilinear<int32_t, 30>(context);
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(ResizeBilinear) {
  return Kernel("the images resized by bilinear interpolation between the four nearest pixels")
      .Types<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>("T")
      .Prepare(PrepareBilinear)
      .Compute(ComputeBilinear);
}

DEFINE_KERNEL(QuantizedResizeBilinear) {
  return Kernel("ResizeBilinear on codes, with fractions in units of 2^-7 (quint8) or 2^-30 (qint32)")
      .Types<QUint8, QInt32, float>("T")
      .Prepare(PrepareQuantizedBilinear)
      .Compute(ComputeQuantizedBilinear);
}

DEFINE_KERNEL(ResizeNearestNeighbor) {
  return Kernel("the images resized; each output pixel is the nearest input pixel")
      .Types<float, double, Half, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>("T")
      .Prepare(PrepareNearest)
      .Compute(ComputeNearest);
}

}  // namespace permafrost
