// Fits, reorders and scales pictures.
#include "tools/images/preprocessing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Maximum number of pixels of an input: 400 MB for one picture as floats, more than any model takes.
constexpr int64_t kMostPixels = int64_t{1} << 25;

template <typename T>
struct Named {
  const char* name;
  T value;
};
constexpr Named<ImageFit> kFits[] = {
    {"stretch", ImageFit::kStretch}, {"crop", ImageFit::kCrop}, {"letterbox", ImageFit::kLetterbox}};
constexpr Named<ChannelOrder> kOrders[] = {
    {"rgb", ChannelOrder::kRgb}, {"bgr", ChannelOrder::kBgr}, {"gray", ChannelOrder::kGray}};

template <typename T, size_t n>
std::vector<std::string> Names(const Named<T> (&rows)[n]) {
  std::vector<std::string> names;
  for (const Named<T>& row : rows) names.emplace_back(row.name);
  return names;
}

template <typename T, size_t n>
absl::StatusOr<T> Parse(const Named<T> (&rows)[n], absl::string_view name) {
  for (const Named<T>& row : rows) {
    if (row.name == name) return row.value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("found '", name, "', expected one of: ", absl::StrJoin(Names(rows), ", ")));
}

// Returns the centred part of the image that fills the input.
PixelWindow WindowOf(const Image& image, const Preprocessing& preprocessing, const PictureFormat& format) {
  double height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  if (preprocessing.fit == ImageFit::kCrop) {
    const double proportion = static_cast<double>(format.width) / static_cast<double>(format.height);
    if (width > height * proportion) {
      width = height * proportion;
    } else {
      height = width / proportion;
    }
  }
  PixelWindow window;
  const auto whole = [&](double side, int64_t most) {
    return std::clamp<int64_t>(std::llround(side * preprocessing.crop_fraction), 1, most);
  };
  window.height = whole(height, image.height);
  window.width = whole(width, image.width);
  window.top = (image.height - window.height) / 2;
  window.left = (image.width - window.width) / 2;
  return window;
}

// Converts to grey with the weights of ITU-R BT.601, as in TensorFlow's rgb_to_grayscale and Pillow's "L".
Picture Grey(const Picture& picture) {
  Picture grey = MakeGrid<float>(picture.height, picture.width, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const float* p = picture.pixels.data() + 3 * i;
    grey.pixels[i] = 0.299F * p[0] + 0.587F * p[1] + 0.114F * p[2];
  }
  return grey;
}

Picture Coloured(const Picture& grey) {
  Picture picture = MakeGrid<float>(grey.height, grey.width, 3);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = grey.pixels[i / 3];
  return picture;
}

// Returns one of `values` for each channel.
absl::StatusOr<std::vector<double>> ByChannel(const std::vector<double>& values, int64_t channels, double otherwise,
                                              absl::string_view name) {
  const auto count = static_cast<size_t>(channels);
  if (values.empty()) return std::vector<double>(count, otherwise);
  if (values.size() == 1) return std::vector<double>(count, values[0]);
  if (values.size() == count) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": found ", values.size(), " numbers, expected 1",
                   count == 1 ? "" : absl::StrCat(", or ", count, ", one for each channel")));
}

}  // namespace

std::vector<std::string> ImageFitNames() { return Names(kFits); }
std::vector<std::string> ChannelOrderNames() { return Names(kOrders); }
absl::StatusOr<ImageFit> ParseImageFit(absl::string_view name) { return Parse(kFits, name); }
absl::StatusOr<ChannelOrder> ParseChannelOrder(absl::string_view name) { return Parse(kOrders, name); }

absl::StatusOr<PictureFormat> FormatOfInput(const Endpoint& input, std::optional<std::pair<int64_t, int64_t>> size) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("input '", input.text, "' ", why));
  };
  PictureFormat format;
  const absl::StatusOr<DType> dtype = TypeAttr(*input.node, "dtype");
  if (!dtype.ok() || (*dtype != DType::kFloat && *dtype != DType::kUint8 && *dtype != DType::kInt8)) {
    return refuse(absl::StrCat("takes ", dtype.ok() ? DTypeName(*dtype) : "an unknown type",
                               ", expected float, uint8 or int8 for pictures"));
  }
  format.dtype = *dtype;
  const absl::StatusOr<Shape> shape = ShapeAttr(*input.node, "shape");
  if (!shape.ok() || !shape->has_rank() || shape->rank() != 4) {
    return refuse(
        absl::StrCat("has shape ", shape.ok() ? shape->ToString() : "?", ", expected four dimensions for pictures"));
  }
  const auto is_channels = [](int64_t dimension) { return dimension == 1 || dimension == 3; };
  if (is_channels(shape->dim(3))) {
    format.layout = PictureLayout::kChannelsLast;
    format.channels = shape->dim(3);
    format.height = shape->dim(1);
    format.width = shape->dim(2);
  } else if (is_channels(shape->dim(1))) {
    format.layout = PictureLayout::kChannelsFirst;
    format.channels = shape->dim(1);
    format.height = shape->dim(2);
    format.width = shape->dim(3);
  } else {
    return refuse(absl::StrCat("has shape ", shape->ToString(),
                               ", expected 1 or 3 channels, in the last or the second dimension"));
  }
  const auto settle = [&](int64_t* dimension, int64_t given) {
    if (*dimension == kUnknownDim) *dimension = given;
    return *dimension == given;
  };
  if (size.has_value() && !(settle(&format.height, size->first) && settle(&format.width, size->second))) {
    return refuse(absl::StrCat("takes pictures of ", format.height, " x ", format.width,
                               ", found --image_size=", size->first, ",", size->second));
  }
  if (format.height == kUnknownDim || format.width == kUnknownDim) {
    return refuse(absl::StrCat("has shape ", shape->ToString(),
                               ", which leaves the size of pictures open: --image_size=HEIGHT,WIDTH"));
  }
  if (format.height > kMostPixels / std::max<int64_t>(format.width, 1)) {
    return refuse(absl::StrCat("takes pictures of ", format.height, " x ", format.width, ", expected at most ",
                               kMostPixels, " pixels"));
  }
  if (format.height < 1 || format.width < 1) {
    return refuse(absl::StrCat("has shape ", shape->ToString(), ", which holds no pixels"));
  }
  return format;
}

absl::StatusOr<PictureConverter> PictureConverter::Create(const Preprocessing& preprocessing,
                                                          const PictureFormat& format) {
  PictureConverter converter(preprocessing, format);
  Preprocessing& settled = converter.preprocessing_;
  if (!settled.order.has_value()) settled.order = format.channels == 1 ? ChannelOrder::kGray : ChannelOrder::kRgb;
  const int64_t wanted = *settled.order == ChannelOrder::kGray ? 1 : 3;
  if (wanted != format.channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("--image_channels: found ", ChannelOrderNames()[static_cast<size_t>(*settled.order)],
                     ", the model takes ", format.channels, format.channels == 1 ? " channel" : " channels"));
  }
  if (!settled.range.has_value()) {
    settled.range = format.dtype == DType::kFloat  ? std::make_pair(0.0, 1.0)
                    : format.dtype == DType::kInt8 ? std::make_pair(-128.0, 127.0)
                                                   : std::make_pair(0.0, 255.0);
  }
  const auto [low, high] = *settled.range;
  if (!(std::isfinite(low) && std::isfinite(high) && low < high)) {
    return absl::InvalidArgumentError(absl::StrCat("--image_range: found ", low, ",", high, ", expected LOW,HIGH"));
  }
  if (!(settled.crop_fraction > 0 && settled.crop_fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--image_crop_fraction: found ", settled.crop_fraction, ", expected more than 0, at most 1"));
  }
  if (!(settled.padding >= 0 && settled.padding <= 255)) {
    return absl::InvalidArgumentError(absl::StrCat("--image_padding: found ", settled.padding, ", expected 0 to 255"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<double> mean, ByChannel(settled.mean, format.channels, 0, "--image_mean"));
  PF_ASSIGN_OR_RETURN(const std::vector<double> deviation,
                      ByChannel(settled.deviation, format.channels, 1, "--image_std"));
  for (size_t c = 0; c < mean.size(); ++c) {
    if (!std::isfinite(mean[c])) return absl::InvalidArgumentError("--image_mean: expected finite numbers");
    if (!(std::isfinite(deviation[c]) && deviation[c] > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("--image_std: found ", deviation[c], ", expected more than 0"));
    }
    converter.factor_.push_back((high - low) / 255 / deviation[c]);
    converter.offset_.push_back((low - mean[c]) / deviation[c]);
  }
  converter.reverses_channels_ = *settled.order == ChannelOrder::kBgr;
  return converter;
}

Picture PictureConverter::Fit(const Image& image) const {
  Picture picture;
  if (preprocessing_.fit == ImageFit::kLetterbox) {
    const double scale = std::min(static_cast<double>(format_.height) / static_cast<double>(image.height),
                                  static_cast<double>(format_.width) / static_cast<double>(image.width));
    const auto scaled = [&](int64_t side, int64_t most) {
      return std::clamp<int64_t>(std::llround(static_cast<double>(side) * scale), 1, most);
    };
    const int64_t height = scaled(image.height, format_.height), width = scaled(image.width, format_.width);
    const Picture inner = Resample(image, {0, 0, image.height, image.width}, height, width, preprocessing_.filter);
    picture = MakeGrid<float>(format_.height, format_.width, image.channels);
    std::fill(picture.pixels.begin(), picture.pixels.end(), static_cast<float>(preprocessing_.padding));
    const int64_t top = (format_.height - height) / 2, left = (format_.width - width) / 2;
    for (int64_t y = 0; y < height; ++y) {
      std::copy_n(inner.At(y, 0), width * image.channels, picture.At(top + y, left));
    }
  } else {
    picture =
        Resample(image, WindowOf(image, preprocessing_, format_), format_.height, format_.width, preprocessing_.filter);
  }
  if (picture.channels == format_.channels) return picture;
  return format_.channels == 1 ? Grey(picture) : Coloured(picture);
}

size_t PictureConverter::PictureIndex(size_t element, size_t* channel) const {
  const auto channels = static_cast<size_t>(format_.channels);
  const auto pixels = static_cast<size_t>(format_.height * format_.width);
  const bool is_last = format_.layout == PictureLayout::kChannelsLast;
  *channel = is_last ? element % channels : element / pixels;
  const size_t pixel = is_last ? element / channels : element % pixels;
  return pixel * channels + (reverses_channels_ ? channels - 1 - *channel : *channel);
}

template <typename T>
absl::StatusOr<Tensor> PictureConverter::Convert(const std::vector<Picture>& pictures) const {
  const auto count = static_cast<int64_t>(pictures.size());
  const bool is_last = format_.layout == PictureLayout::kChannelsLast;
  const Shape shape = is_last ? Shape({count, format_.height, format_.width, format_.channels})
                              : Shape({count, format_.channels, format_.height, format_.width});
  T* elements = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate<T>(shape, &elements));
  for (const Picture& picture : pictures) {
    for (size_t i = 0; i < picture.pixels.size(); ++i) {
      size_t channel = 0;
      const double pixel = picture.pixels[PictureIndex(i, &channel)];
      const double value = pixel * factor_[channel] + offset_[channel];
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        elements[i] = static_cast<T>(std::clamp<double>(std::nearbyint(value), Limits::min(), Limits::max()));
      } else {
        elements[i] = static_cast<T>(value);
      }
    }
    elements += picture.pixels.size();
  }
  return tensor;
}

absl::StatusOr<Tensor> PictureConverter::ToTensor(const std::vector<Picture>& pictures) const {
  switch (format_.dtype) {
    case DType::kUint8:
      return Convert<uint8_t>(pictures);
    case DType::kInt8:
      return Convert<int8_t>(pictures);
    default:
      return Convert<float>(pictures);
  }
}

absl::StatusOr<std::vector<Picture>> PictureConverter::ToPictures(const Tensor& tensor) const {
  std::vector<Picture> pictures;
  const auto size = static_cast<size_t>(format_.height * format_.width * format_.channels);
  const auto rows = static_cast<size_t>(tensor.num_elements()) / size;
  double least = 255, most = 0;
  DispatchOn<float, uint8_t, int8_t>(tensor.dtype(), [&](auto tag) {
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    for (size_t row = 0; row < rows; ++row) {
      Picture picture = MakeGrid<float>(format_.height, format_.width, format_.channels);
      for (size_t i = 0; i < size; ++i) {
        size_t channel = 0;
        float& pixel = picture.pixels[PictureIndex(i, &channel)];
        const double value = (static_cast<double>(elements[row * size + i]) - offset_[channel]) / factor_[channel];
        if (std::isnan(value)) least = value;  // NaN then stays the minimum.
        least = std::min(least, value);
        most = std::max(most, value);
        pixel = static_cast<float>(value);
      }
      pictures.push_back(std::move(picture));
    }
  });
  if (!(least >= -0.5 && most <= 255.5)) {
    return absl::InvalidArgumentError(
        absl::StrCat("as pictures the inputs hold brightness from ", least, " to ", most,
                     ", expected 0 to 255: --image_range, --image_mean and --image_std say what was done to them"));
  }
  return pictures;
}

}  // namespace permafrost
