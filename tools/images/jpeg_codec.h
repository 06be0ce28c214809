// Decodes JPEG files, and encodes them to memory.
#ifndef PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_
#define PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// Returns whether the bytes start like a JPEG file.
bool IsJpeg(absl::string_view bytes);

// Decodes baseline and progressive files, grey, YCbCr, RGB and CMYK, with libjpeg-turbo's defaults. The pixels equal
// those of Pillow, and of TensorFlow's decode_jpeg with dct_method='INTEGER_ACCURATE' (without it, TensorFlow's differ
// by a few steps of 255). Grey files give 1 channel, others 3. The orientation recorded by a camera is not applied, as
// in Pillow and TensorFlow. DataLoss for a file that is damaged or truncated, even where a viewer would show the upper
// half; ResourceExhausted beyond the limits.
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const ImageLimits& limits);

// Encodes a baseline file, with chroma at half the resolution as in cameras. `quality` is libjpeg's, 1 to 100.
absl::StatusOr<std::string> EncodeJpeg(const Image& image, int quality);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_JPEG_CODEC_H_
