// Pictures in memory: with 8-bit pixels as in files, and with float pixels for computation.
#ifndef PERMAFROST_TOOLS_IMAGES_IMAGE_H_
#define PERMAFROST_TOOLS_IMAGES_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime_check/images/image_decoding.h"

namespace permafrost {

// A grid of pixels, row by row from the top. The channels of a pixel are adjacent: grey, or red, green and blue.
template <typename T>
struct PixelGrid {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  // 1 or 3.
  std::vector<T> pixels;

  size_t Offset(int64_t y, int64_t x) const { return static_cast<size_t>((y * width + x) * channels); }
  T* At(int64_t y, int64_t x) { return pixels.data() + Offset(y, x); }
  const T* At(int64_t y, int64_t x) const { return pixels.data() + Offset(y, x); }
};

template <typename T>
PixelGrid<T> MakeGrid(int64_t height, int64_t width, int64_t channels) {
  return {height, width, channels, std::vector<T>(static_cast<size_t>(height * width * channels))};
}

using Image = PixelGrid<uint8_t>;  // Pixels as in a file.
using Picture = PixelGrid<float>;  // Pixels for computation: 0 is black, 255 is full brightness.

// Limits for decoders of untrusted files.
struct ImageLimits {
  int64_t max_pixels = kMostPicturePixels;  // A file that claims more is rejected before any allocation.
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_IMAGE_H_
