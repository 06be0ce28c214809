// Parses the flags for pictures.
#include "tools/validation/image_flags.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

// No valid model takes larger pictures than this.
constexpr int64_t kMostSide = 1 << 15;

absl::StatusOr<std::vector<double>> ParseNumbers(absl::string_view flag, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& piece : SplitList(text)) {
    double number = 0;
    if (!absl::SimpleAtod(piece, &number) || !std::isfinite(number)) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": found '", piece, "', expected a number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::optional<std::pair<int64_t, int64_t>>> ParseSize(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::vector<int64_t> sides;
  for (const std::string& piece : SplitList(text)) {
    int64_t side = 0;
    if (!absl::SimpleAtoi(piece, &side) || side < 1 || side > kMostSide) {
      return absl::InvalidArgumentError(absl::StrCat("--image_size: found '", piece, "', expected 1 to ", kMostSide));
    }
    sides.push_back(side);
  }
  if (sides.empty() || sides.size() > 2) {
    return absl::InvalidArgumentError(absl::StrCat("--image_size: found '", text, "', expected HEIGHT,WIDTH"));
  }
  return std::make_pair(sides.front(), sides.back());
}

}  // namespace

void AddImageFlags(ImageFlags* image, FlagTable* flags) {
  flags->Group("conversion of images");
  flags->Add("image_size", &image->size, "HEIGHT,WIDTH",
             "Size in pixels to which images are resized. Default: the size that the model declares.");
  flags->AddChoice("image_fit", &image->fit, ImageFitNames(),
                   "Fit of an image into this size. stretch: the whole image; crop: its centre, with the aspect ratio "
                   "of the input; letterbox: the whole image with its own aspect ratio, padded.");
  flags->AddChoice("image_filter", &image->filter, ResizeFilterNames(),
                   "Filter for resizing. bilinear: as TensorFlow's resize; antialias: as TensorFlow with "
                   "antialias=True and Pillow's BILINEAR; area: mean of the covered pixels.");
  flags->Add(
      "image_crop_fraction", &image->crop_fraction, "X",
      "Fraction of height and width that is kept, at the centre. ImageNet models are often measured with 0.875.");
  flags->Add("image_padding", &image->padding, "X", "Brightness of the padding of letterbox, 0 to 255.");
  flags->Add("image_channels", &image->channels, "ORDER",
             absl::StrCat("Order of the channels: ", absl::StrJoin(ChannelOrderNames(), ", "),
                          ". Default: rgb, or gray for a model with one channel."));
  flags->Add("image_range", &image->range, "LOW,HIGH",
             "Values of black and white, before --image_mean and --image_std. Default: 0,1, or the range of an integer "
             "type.");
  flags->Add("image_mean", &image->mean, "NUMBERS",
             "Numbers subtracted after --image_range: one, or one per channel in the order of the model.");
  flags->Add("image_std", &image->deviation, "NUMBERS",
             "Divisors applied after --image_mean: one, or one per channel in the order of the model.");
  flags->Group("");
}

absl::StatusOr<PictureConverter> MakePictureConverter(const ImageFlags& image, const Endpoint& input) {
  Preprocessing preprocessing;
  PF_ASSIGN_OR_RETURN(preprocessing.fit, ParseImageFit(image.fit));
  PF_ASSIGN_OR_RETURN(preprocessing.filter, ParseResizeFilter(image.filter));
  preprocessing.crop_fraction = image.crop_fraction;
  preprocessing.padding = image.padding;
  if (!image.channels.empty()) {
    const absl::StatusOr<ChannelOrder> order = ParseChannelOrder(image.channels);
    if (!order.ok()) return Annotate(order.status(), "--image_channels");
    preprocessing.order = *order;
  }
  if (!image.range.empty()) {
    PF_ASSIGN_OR_RETURN(const std::vector<double> ends, ParseNumbers("--image_range", image.range));
    if (ends.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("--image_range: found '", image.range, "', expected LOW,HIGH"));
    }
    preprocessing.range = std::make_pair(ends[0], ends[1]);
  }
  PF_ASSIGN_OR_RETURN(preprocessing.mean, ParseNumbers("--image_mean", image.mean));
  PF_ASSIGN_OR_RETURN(preprocessing.deviation, ParseNumbers("--image_std", image.deviation));
  PF_ASSIGN_OR_RETURN(const auto size, ParseSize(image.size));
  PF_ASSIGN_OR_RETURN(const PictureFormat format, FormatOfInput(input, size));
  return PictureConverter::Create(preprocessing, format);
}

}  // namespace permafrost
