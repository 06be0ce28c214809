// Image resizing: the positions of output pixels between input pixels, and their interpolation.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_SAMPLING_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_SAMPLING_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// The two input positions next to an output position, and its fractional distance from the first one.
struct Tap {
  int64_t lower, upper;
  float fraction;
};

// Returns the number of input pixels per output pixel.
float SamplingScale(int64_t input, int64_t output, bool align_corners);

// Returns one tap for each of `output` positions along an axis of `input` positions. REQUIRES: both are at least 1 and
// at most 2^24.
std::vector<Tap> BilinearTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers);

// The same for the nearest input position: both positions of a tap are that one.
std::vector<Tap> NearestTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers);

// The parameters of an op that resizes input 0, images [batch, height, width, channels], to the size in input 1.
struct Resizing {
  int64_t height = 0, width = 0;  // Size of the output.
  bool align_corners = false, half_pixel_centers = false;
  bool is_empty = false;  // The output has no elements.
};

// Reads the parameters and sets the shape of output 0. Returns InvalidArgument unless all sides are 1 to 2^24 pixels:
// larger positions are not exact in float.
absl::StatusOr<Resizing> ReadResizing(PrepareContext* context);

// The state of a resizing op. Each output pixel is computed from a tap for its line and a tap for its column.
template <typename AnyTap>
struct ResizeState : public KernelState {
  int64_t batch = 0, height = 0, width = 0, channels = 0;  // Shape of the input.
  std::vector<AnyTap> y, x;  // One per output line and column; empty for an output without elements.
};

// The Prepare function of a resizing op. place(input, output, align_corners, half_pixel_centers) returns the taps of an
// axis.
template <typename AnyTap>
absl::Status PrepareResize(PrepareContext* context, std::vector<AnyTap> (*place)(int64_t, int64_t, bool, bool)) {
  PF_ASSIGN_OR_RETURN(const Resizing resizing, ReadResizing(context));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<ResizeState<AnyTap>>();
  state->batch = input.dim(0);
  state->height = input.dim(1);
  state->width = input.dim(2);
  state->channels = input.dim(3);
  if (!resizing.is_empty) {
    state->y = place(state->height, resizing.height, resizing.align_corners, resizing.half_pixel_centers);
    state->x = place(state->width, resizing.width, resizing.align_corners, resizing.half_pixel_centers);
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

inline float AsFloat(Half x) { return ToFloat(x); }
inline float AsFloat(BFloat16 x) { return ToFloat(x); }
template <typename T>
float AsFloat(T x) {
  return static_cast<float>(x);
}
// Converts an element to float or double.
template <typename Out, typename T>
Out As(T x) {
  if constexpr (std::is_same_v<Out, double> && std::is_same_v<T, double>) {
    return x;
  } else {
    return AsFloat(x);
  }
}

// Computes one line of output pixels from the input lines at `top` and `bottom`, in the type of `out`.
template <typename T, typename Out>
void InterpolateLine(const T* top, const T* bottom, float y_fraction, absl::Span<const Tap> columns, int64_t channels,
                     Out* out) {
  for (const Tap& x : columns) {
    const T *top_left = top + x.lower * channels, *top_right = top + x.upper * channels;
    const T *bottom_left = bottom + x.lower * channels, *bottom_right = bottom + x.upper * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const Out a = As<Out>(top_left[c]), b = As<Out>(bottom_left[c]);
      const Out upper = a + (As<Out>(top_right[c]) - a) * x.fraction;
      const Out lower = b + (As<Out>(bottom_right[c]) - b) * x.fraction;
      *out++ = upper + (lower - upper) * y_fraction;
    }
  }
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_SAMPLING_H_
