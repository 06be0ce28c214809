// Opens a picture of any kind that is read.
#ifndef PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_
#define PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file_system.h"
#include "tools/images/image.h"

namespace permafrost {

// Whether a file of this name should be a picture: .png, .jpg, .jpeg, in any case.
bool HasImageName(absl::string_view path);

// The picture in a PNG or JPEG file; which of them it is, its content says. Errors name the file: those of files,
// DataLoss for a damaged one, InvalidArgument for a file of another kind, ResourceExhausted beyond the limits.
absl::StatusOr<Image> ReadImageFile(FileSystem& files, const std::string& path, const ImageLimits& limits = {});

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_IMAGE_FILE_H_
