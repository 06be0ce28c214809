// PNG files as images of the tools.
#include "tools/images/png_codec.h"

#include "graph/base/status.h"
#include "runtime_check/images/image_decoding.h"

namespace permafrost {

bool IsPng(absl::string_view bytes) { return StartsLikePng(bytes); }

absl::StatusOr<Image> DecodePng(absl::string_view bytes, const ImageLimits& limits) {
  PngOptions options;
  options.drops_alpha = true;
  options.max_pixels = limits.max_pixels;
  Image image;
  const auto allocate = [&](const PictureSize& size) -> absl::StatusOr<uint8_t*> {
    image = MakeGrid<uint8_t>(size.height, size.width, size.channels);
    return image.pixels.data();
  };
  PF_RETURN_IF_ERROR(DecodePngPixels(bytes, options, allocate));
  return image;
}

}  // namespace permafrost
