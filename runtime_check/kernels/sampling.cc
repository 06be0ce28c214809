// Where the pixels of a resized image lie in the original.
#include "runtime_check/kernels/sampling.h"

#include <algorithm>
#include <cmath>

namespace permafrost {

float SamplingScale(int64_t input, int64_t output, bool align_corners) {
  return align_corners && output > 1 ? (input - 1) / static_cast<float>(output - 1)
                                     : input / static_cast<float>(output);
}

std::vector<Tap> BilinearTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers) {
  const float scale = SamplingScale(input, output, align_corners);
  std::vector<Tap> taps(output);
  for (int64_t i = 0; i < output; ++i) {
    const float position = half_pixel_centers ? (i + 0.5f) * scale - 0.5f : i * scale;
    const float floor = std::floor(position);
    taps[i].lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, input - 1);
    taps[i].upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(position)), 0, input - 1);
    taps[i].fraction = position - floor;
  }
  return taps;
}

}  // namespace permafrost
