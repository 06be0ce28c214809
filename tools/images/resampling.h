// Resizes pictures.
#ifndef PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_
#define PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// The filter that computes a pixel of the result from pixels of the source. Pixel centres are at half coordinates in
// all filters.
//   bilinear    the four nearest pixels: tf.image.resize(method='bilinear'), the default of TensorFlow 2
//   antialias   a triangle as wide as two pixels of the result: tf.image.resize(..., antialias=True); equals Pillow's
//               BILINEAR up to rounding
//   area        the mean of the covered area: tf.image.resize(method='area')
//   nearest     the nearest pixel: tf.image.resize(method='nearest')
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

// Returns the window of the image resized to height x width, computed in float without rounding. REQUIRES: sizes of at
// least 1, a window inside the image.
Picture Resample(const Image& image, const PixelWindow& window, int64_t height, int64_t width, ResizeFilter filter);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_RESAMPLING_H_
