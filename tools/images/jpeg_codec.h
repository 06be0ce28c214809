// Reads JPEG files, and writes them to memory.
#ifndef PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_
#define PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// Whether the bytes start as a JPEG file does.
bool IsJpeg(absl::string_view bytes);

// Baseline and progressive files, grey, YCbCr, RGB and CMYK, with libjpeg-turbo's defaults: the pixels that Pillow
// reads, and TensorFlow's decode_jpeg with dct_method='INTEGER_ACCURATE' (without it, its are up to some steps of 255
// off). Grey files give 1 channel, others 3. The orientation that a camera notes is not applied, as in those. DataLoss
// for a file that is damaged or cut short, also where a viewer would show the upper half; ResourceExhausted beyond the
// limits.
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const ImageLimits& limits);

// Baseline, colours at half the resolution as cameras do it. `quality` is libjpeg's, 1 to 100.
absl::StatusOr<std::string> EncodeJpeg(const Image& image, int quality);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_
