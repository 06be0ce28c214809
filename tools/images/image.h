// Pictures in memory: as files hold them, and as they are computed with.
#ifndef PERMAFROST_TOOLS_IMAGES_IMAGE_H_
#define PERMAFROST_TOOLS_IMAGES_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace permafrost {

// Row by row from the top, the channels of a pixel side by side: grey, or red, green and blue.
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

using Image = PixelGrid<uint8_t>;  // As a file holds it.
using Picture = PixelGrid<float>;  // As it is computed with: 0 is black, 255 as bright as can be.

struct ImageLimits {
  // What a decoder makes room for, 3 bytes each. The largest sensors of phones have 108 million; a file that
  // claims more than this is refused before any memory is taken.
  int64_t max_pixels = int64_t{1} << 27;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_IMAGE_H_
