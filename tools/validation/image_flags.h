// Flags for the preprocessing of pictures.
#ifndef PERMAFROST_TOOLS_VALIDATION_IMAGE_FLAGS_H_
#define PERMAFROST_TOOLS_VALIDATION_IMAGE_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "tools/command_line/flags.h"
#include "tools/images/preprocessing.h"

namespace permafrost {

// The values as typed.
struct ImageFlags {
  std::string size;  // "HEIGHT,WIDTH" or "SIDE".
  std::string fit = "stretch";
  std::string filter = "bilinear";
  double crop_fraction = 1;
  double padding = 0;
  std::string channels;  // Empty: the number of channels of the model.
  std::string range;
  std::string mean;
  std::string deviation;
};

// Adds --image_size, --image_fit, --image_filter, --image_crop_fraction, --image_padding, --image_channels,
// --image_range, --image_mean, --image_std.
void AddImageFlags(ImageFlags* image, FlagTable* flags);

// Returns the converter for this input. InvalidArgument with the flag's name, found and expected.
absl::StatusOr<PictureConverter> MakePictureConverter(const ImageFlags& image, const Endpoint& input);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_IMAGE_FLAGS_H_
