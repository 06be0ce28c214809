// From a picture to the numbers that a model is fed, and back.
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

// How a picture gets into the model's frame.
enum class ImageFit {
  kStretch,    // All of it, whatever that does to its proportions.
  kCrop,       // Its middle, as large as the proportions of the frame allow.
  kLetterbox,  // All of it in its proportions, centred, with bars.
};
enum class ChannelOrder { kRgb, kBgr, kGray };
enum class ImageLayout { kChannelsLast, kChannelsFirst };

std::vector<std::string> ImageFitNames();
std::vector<std::string> ChannelOrderNames();
absl::StatusOr<ImageFit> ParseImageFit(absl::string_view name);
absl::StatusOr<ChannelOrder> ParseChannelOrder(absl::string_view name);

// What the user says. A value v of 0..255 becomes (low + v / 255 * (high - low) - mean) / deviation, mean and deviation
// by channel in the model's order.
struct Preprocessing {
  ImageFit fit = ImageFit::kStretch;
  ResizeFilter filter = ResizeFilter::kBilinear;
  double crop_fraction = 1;                        // Of the sides that kStretch and kCrop would take, the middle.
  double padding = 0;                              // Of the bars, 0..255.
  std::optional<ChannelOrder> order;               // Absent: grey for a model with one channel, else red, green, blue.
  std::optional<std::pair<double, double>> range;  // Absent: 0..1, for integers all that the type holds.
  std::vector<double> mean;                        // None, one, or one for each channel.
  std::vector<double> deviation;                   // The same.
};

// What a model takes.
struct PictureFormat {
  DType dtype = DType::kFloat;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  ImageLayout layout = ImageLayout::kChannelsLast;
};

// What `input` takes, from its type and shape; `size` (height, width) where the shape leaves that open.
// InvalidArgument, naming the input, where it takes no pictures: type float, uint8 or int8, four dimensions, of which
// the last, or else the second, is 1 or 3, and a size that neither or both say.
absl::StatusOr<PictureFormat> FormatOfInput(const Endpoint& input, std::optional<std::pair<int64_t, int64_t>> size);

// Converts pictures for one input.
class PictureConverter {
 public:
  // InvalidArgument for settings that do not fit each other or the format.
  static absl::StatusOr<PictureConverter> Create(const Preprocessing& preprocessing, const PictureFormat& format);

  const PictureFormat& format() const { return format_; }
  // Resized, and grey where the model wants that.
  Picture Fit(const Image& image) const;
  // A batch. REQUIRES: pictures as Fit gives them. ResourceExhausted when memory does not suffice.
  absl::StatusOr<Tensor> ToTensor(const std::vector<Picture>& pictures) const;
  // The pictures that a tensor of this format holds. InvalidArgument for values that are further than half of a step of
  // 255 out of the range, which say that the preprocessing is not that of the tensor.
  absl::StatusOr<std::vector<Picture>> ToPictures(const Tensor& tensor) const;

 private:
  PictureConverter(const Preprocessing& preprocessing, const PictureFormat& format)
      : preprocessing_(preprocessing), format_(format) {}
  template <typename T>
  absl::StatusOr<Tensor> Convert(const std::vector<Picture>& pictures) const;
  // Where an element of a row of the tensor is in a picture.
  size_t PictureIndex(size_t element, size_t* channel) const;

  Preprocessing preprocessing_;
  PictureFormat format_;
  bool reverses_channels_ = false;
  // element = value * factor + offset, by channel of the model.
  std::vector<double> factor_, offset_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_PREPROCESSING_H_
