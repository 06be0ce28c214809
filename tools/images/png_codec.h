// Reads PNG files.
#ifndef PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_
#define PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// Whether the bytes start as a PNG file does.
bool IsPng(absl::string_view bytes);

// Any PNG file, as 8 bits a channel: of 16 bits the upper eight, palettes looked up, transparency dropped, no
// correction of gamma or colour profile, which is what TensorFlow's decode_png and Pillow do. Grey files give 1
// channel, others 3. DataLoss for a file that is damaged or cut short, ResourceExhausted beyond the limits.
absl::StatusOr<Image> DecodePng(absl::string_view bytes, const ImageLimits& limits);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_PNG_CODEC_H_
