// Bilinear sampling of images: where output pixels lie between input pixels, and what they are.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_SAMPLING_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_SAMPLING_H_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "graph/dtype.h"

namespace permafrost {

// The two input positions that an output position lies between, and how far it is from the first to the second.
struct Tap {
  int64_t lower, upper;
  float fraction;
};

// Input pixels per output pixel.
float SamplingScale(int64_t input, int64_t output, bool align_corners);

// One tap for each of `output` positions along an axis of `input` positions. REQUIRES: both at least 1, at most 2^24.
std::vector<Tap> BilinearTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers);

inline float AsFloat(Half x) { return ToFloat(x); }
inline float AsFloat(BFloat16 x) { return ToFloat(x); }
template <typename T>
float AsFloat(T x) {
  return static_cast<float>(x);
}
// The same as float or double.
template <typename Out, typename T>
Out As(T x) {
  if constexpr (std::is_same_v<Out, double> && std::is_same_v<T, double>) {
    return x;
  } else {
    return AsFloat(x);
  }
}

// One line of output pixels between the input lines that begin at `top` and `bottom`, computed in the type of `out`.
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
