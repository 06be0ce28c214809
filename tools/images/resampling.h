// Makes pictures larger and smaller.
#ifndef PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_
#define PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// How a pixel of the result is made of those of the source. Centres of pixels are at half coordinates in all of them.
//   bilinear    of the four nearest: tf.image.resize(method='bilinear'), the default of TensorFlow 2
//   antialias   a triangle as wide as two pixels of the result: tf.image.resize(..., antialias=True); within a rounding
//               of what Pillow's BILINEAR does
//   area        the mean of what the pixel covers: tf.image.resize(method='area')
//   nearest     the nearest: tf.image.resize(method='nearest')
enum class ResizeFilter { kBilinear, kAntialias, kArea, kNearest };

std::vector<std::string> ResizeFilterNames();
absl::StatusOr<ResizeFilter> ParseResizeFilter(absl::string_view name);

// Part of a picture, in pixels.
struct PixelWindow {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// The window of the image as a picture of height x width, computed in float without rounding. REQUIRES: sizes of at
// least 1, a window inside of the image.
Picture Resample(const Image& image, const PixelWindow& window, int64_t height, int64_t width, ResizeFilter filter);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_
