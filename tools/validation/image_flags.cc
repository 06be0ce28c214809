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
  flags->Add("image_size", &image->size, "HEIGHT,WIDTH", "The size of pictures, where the model leaves it open.");
  flags->AddChoice("image_fit", &image->fit, ImageFitNames(),
                   "How a picture fills the model's frame: stretch takes all of it, crop its middle in the frame's "
                   "proportions, letterbox all of it in its own proportions, with bars.");
  flags->AddChoice("image_filter", &image->filter, ResizeFilterNames(),
                   "How pictures are resized: bilinear is TensorFlow's resize, antialias TensorFlow's with "
                   "antialias=True and Pillow's BILINEAR, area the mean of what a pixel covers.");
  flags->Add("image_crop_fraction", &image->crop_fraction, "X",
             "Take only the middle: so much of the height and width. Many models are judged with 0.875.");
  flags->Add("image_padding", &image->padding, "X", "The brightness of the bars of letterbox, 0 to 255.");
  flags->Add("image_channels", &image->channels, "ORDER",
             absl::StrCat("What the model takes: ", absl::StrJoin(ChannelOrderNames(), ", "),
                          ". Left out: rgb, or gray for a model with one channel."));
  flags->Add("image_range", &image->range, "LOW,HIGH",
             "What black and white become, before --image_mean and --image_std. Left out: 0,1, for integers all that "
             "the type holds.");
  flags->Add("image_mean", &image->mean, "NUMBERS",
             "Subtracted from what --image_range gives: one number, or one for each channel in the model's order.");
  flags->Add("image_std", &image->deviation, "NUMBERS", "What is left is divided by this.");
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
