// Decodes PNG files.
#ifndef PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_
#define PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// Returns whether the bytes start like a PNG file.
bool IsPng(absl::string_view bytes);

// Decodes any PNG file to 8 bits per channel, as TensorFlow's decode_png and Pillow do: 16-bit samples keep the upper
// eight bits, palettes are expanded, transparency is dropped, gamma and colour profiles are ignored. Grey files give 1
// channel, others 3. DataLoss for a file that is damaged or truncated, ResourceExhausted beyond the limits.
absl::StatusOr<Image> DecodePng(absl::string_view bytes, const ImageLimits& limits);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_
