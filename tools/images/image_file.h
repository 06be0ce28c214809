// Reads pictures of every supported format.
#ifndef PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_
#define PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"
#include "tools/images/image.h"

namespace permafrost {

// Returns whether the file name has a picture's extension: .png, .jpg, .jpeg, in any case.
bool HasImageName(absl::string_view path);

// Reads a PNG or JPEG file; the format is detected from the content. Errors name the file: errors of the file system,
// DataLoss for a damaged file, InvalidArgument for another format, ResourceExhausted beyond the limits.
absl::StatusOr<Image> ReadImageFile(FileSystem& files, const std::string& path, const ImageLimits& limits = {});

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_
