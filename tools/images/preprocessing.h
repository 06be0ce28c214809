// Converts pictures to input tensors of a model, and back.
#ifndef PERMAFROST_TOOLS_IMAGES_PREPROCESSING_H_
#define PERMAFROST_TOOLS_IMAGES_PREPROCESSING_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "tools/images/image.h"
#include "tools/images/resampling.h"

namespace permafrost {

// The way in which a picture is fitted into the model's input size.
enum class ImageFit {
  kStretch,    // The whole picture, without keeping its aspect ratio.
  kCrop,       // The largest centred part with the aspect ratio of the input.
  kLetterbox,  // The whole picture with its aspect ratio, centred, with bars.
};
enum class ChannelOrder { kRgb, kBgr, kGray };
enum class PictureLayout { kChannelsLast, kChannelsFirst };

std::vector<std::string> ImageFitNames();
std::vector<std::string> ChannelOrderNames();
absl::StatusOr<ImageFit> ParseImageFit(absl::string_view name);
absl::StatusOr<ChannelOrder> ParseChannelOrder(absl::string_view name);

// Preprocessing as the user sets it. A value v of 0..255 becomes (low + v / 255 * (high - low) - mean) / deviation,
// with mean and deviation by channel in the model's order.
struct Preprocessing {
  ImageFit fit = ImageFit::kStretch;
  ResizeFilter filter = ResizeFilter::kBilinear;
  double crop_fraction = 1;                        // The centred share of the sides that kStretch and kCrop use.
  double padding = 0;                              // The value of the bars, 0..255.
  std::optional<ChannelOrder> order;               // Absent: grey for a model with one channel, else red, green, blue.
  std::optional<std::pair<double, double>> range;  // Absent: 0..1, for integers the full range of the type.
  std::vector<double> mean;                        // None, one, or one per channel.
  std::vector<double> deviation;                   // None, one, or one per channel.
};

// The picture format of a model's input.
struct PictureFormat {
  DType dtype = DType::kFloat;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  PictureLayout layout = PictureLayout::kChannelsLast;
};

// Returns the picture format of `input`, from its type and shape, and from `size` (height, width) if the shape leaves
// the size open. InvalidArgument, naming the input, if it takes no pictures. A valid input has type float, uint8 or
// int8 and four dimensions; the last, or else the second, is 1 or 3. Exactly one of shape and `size` must give the
// size.
absl::StatusOr<PictureFormat> FormatOfInput(const Endpoint& input, std::optional<std::pair<int64_t, int64_t>> size);

// Converts pictures for one input of a model.
class PictureConverter {
 public:
  // Creates a converter. InvalidArgument for settings that contradict each other or the format.
  static absl::StatusOr<PictureConverter> Create(const Preprocessing& preprocessing, const PictureFormat& format);

  const PictureFormat& format() const { return format_; }
  // Returns the picture resized, and converted to grey if the model takes one channel.
  Picture Fit(const Image& image) const;
  // Returns a batch. REQUIRES: pictures returned by Fit. ResourceExhausted if memory does not suffice.
  absl::StatusOr<Tensor> ToTensor(const std::vector<Picture>& pictures) const;
  // Returns the pictures in a tensor of this format. InvalidArgument for values out of range by more than half a step
  // of 255, since the tensor then has another preprocessing.
  absl::StatusOr<std::vector<Picture>> ToPictures(const Tensor& tensor) const;

 private:
  PictureConverter(const Preprocessing& preprocessing, const PictureFormat& format)
      : preprocessing_(preprocessing), format_(format) {}
  template <typename T>
  absl::StatusOr<Tensor> Convert(const std::vector<Picture>& pictures) const;
  // Returns the index in a picture of an element of a row of the tensor.
  size_t PictureIndex(size_t element, size_t* channel) const;

  Preprocessing preprocessing_;
  PictureFormat format_;
  bool reverses_channels_ = false;
  // element = value * factor + offset, by channel of the model.
  std::vector<double> factor_, offset_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_PREPROCESSING_H_
