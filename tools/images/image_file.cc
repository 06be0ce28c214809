// Detects the format of a picture by its first bytes.
#include "tools/images/image_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/images/jpeg_codec.h"
#include "tools/images/png_codec.h"

namespace permafrost {
namespace {

absl::StatusOr<Image> Decode(absl::string_view bytes, const ImageLimits& limits) {
  if (IsPng(bytes)) return DecodePng(bytes, limits);
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, limits);
  if (bytes.empty()) return absl::InvalidArgumentError("the file is empty, expected a PNG or JPEG file");
  return absl::InvalidArgumentError("neither a PNG nor a JPEG file");
}

}  // namespace

bool HasImageName(absl::string_view path) {
  for (const absl::string_view extension : {".png", ".jpg", ".jpeg"}) {
    if (absl::EndsWithIgnoreCase(path, extension)) return true;
  }
  return false;
}

absl::StatusOr<Image> ReadImageFile(FileSystem& files, const std::string& path, const ImageLimits& limits) {
  PF_ASSIGN_OR_RETURN(const FileView file, files.MapFile(path));
  absl::StatusOr<Image> image = Decode(file.bytes, limits);
  if (!image.ok()) return Annotate(image.status(), absl::StrCat("'", path, "'"));
  return image;
}

}  // namespace permafrost
