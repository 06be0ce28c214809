// ResizeBicubic: images resized with cubic interpolation (Keys: "Cubic convolution interpolation", 1981).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace {

// Fractions of a pixel are rounded to this number of steps, as for TensorFlow's table.
constexpr float kSteps = 1024;

struct CubicTap {
  std::array<int64_t, 4> positions;
  std::array<float, 4> weights;
};

using BicubicState = ResizeState<CubicTap>;

// Evaluate the kernel with parameter a at a distance in [0, 1], and in [1, 2].
float Near(double a, double x) { return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1); }
float Far(double a, double x) { return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a); }

std::vector<CubicTap> CubicTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers) {
  const float scale = SamplingScale(input, output, align_corners);
  const double a = half_pixel_centers ? -0.5 : -0.75;
  std::vector<CubicTap> taps(output);
  for (int64_t i = 0; i < output; ++i) {
    const auto place = static_cast<float>(i);
    const float position = half_pixel_centers ? (place + 0.5f) * scale - 0.5f : place * scale;
    const auto first = static_cast<int64_t>(std::floor(position));
    const float fraction = std::rint((position - static_cast<float>(first)) * kSteps) / kSteps;
    CubicTap& tap = taps[i];
    tap.weights = {Far(a, fraction + 1), Near(a, fraction), Near(a, 1 - fraction), Far(a, 2 - fraction)};
    float sum = 0;
    for (int t = 0; t < 4; ++t) {
      const int64_t wanted = first - 1 + t;
      tap.positions[t] = std::clamp<int64_t>(wanted, 0, input - 1);
      // With half-pixel centers, pixels outside the image are ignored; otherwise the border is repeated.
      if (half_pixel_centers && tap.positions[t] != wanted) tap.weights[t] = 0;
      sum += tap.weights[t];
    }
    if (half_pixel_centers && std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
      for (float& weight : tap.weights) weight /= sum;
    }
  }
  return taps;
}

absl::Status Prepare(PrepareContext* context) { return PrepareResize(context, CubicTaps); }

template <typename T>
void ResizeLine(const BicubicState& state, const T* image, const CubicTap& y, float* out) {
  const int64_t row = state.width * state.channels;
  for (const CubicTap& x : state.x) {
    for (int64_t c = 0; c < state.channels; ++c) {
      float sum = 0;
      for (int tx = 0; tx < 4; ++tx) {
        const T* column = image + x.positions[tx] * state.channels + c;
        float value = 0;
        for (int ty = 0; ty < 4; ++ty) value += AsFloat(column[y.positions[ty] * row]) * y.weights[ty];
        sum += value * x.weights[tx];
      }
      *out++ = sum;
    }
  }
}

absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<BicubicState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  float* output = context->output<float>(0);
  const int64_t lines = static_cast<int64_t>(state.y.size());
  const int64_t line_elements = static_cast<int64_t>(state.x.size()) * state.channels;
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>(
      context->input_at(0).dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* images = context->input<T>(0);
        context->threads().ParallelFor(
            state.batch * lines, 1 + (1 << 10) / line_elements, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                ResizeLine(state, images + i / lines * state.height * state.width * state.channels, state.y[i % lines],
                           output + i * line_elements);
              }
            });
      });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(ResizeBicubic) {
  return Kernel("the images resized by bicubic interpolation")
      .Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
