// Tests of resizing as in TensorFlow, and of conversion between pictures and tensors.
#include "tools/images/preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/shared_models.h"
#include "tests/tools/graph_from_text.h"
#include "tools/model/model_inputs.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;

Tensor Recorded(const std::string& name) {
  return ReadNpyFile(RealFileSystem(), DataFile(absl::StrCat("tests/images/recorded/", name, ".npy"))).value();
}

Image RecordedImage() {
  const Tensor tensor = Recorded("source");
  Image image = MakeGrid<uint8_t>(tensor.shape().dim(0), tensor.shape().dim(1), 3);
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), image.pixels.begin());
  return image;
}

Image Plain(int64_t height, int64_t width, const std::vector<uint8_t>& pixel) {
  Image image = MakeGrid<uint8_t>(height, width, static_cast<int64_t>(pixel.size()));
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = pixel[i % pixel.size()];
  return image;
}

class ResampleTest : public testing::TestWithParam<std::string> {};

TEST_P(ResampleTest, IsWhatTensorFlowGives) {
  const Image image = RecordedImage();
  const ResizeFilter filter = ParseResizeFilter(GetParam()).value();
  for (const auto& [height, width] : std::vector<std::pair<int, int>>{{4, 3}, {5, 16}, {20, 31}, {13, 11}}) {
    const Tensor expected = Recorded(absl::StrCat(GetParam(), "_", height, "x", width));
    const Picture found = Resample(image, {0, 0, image.height, image.width}, height, width, filter);
    ASSERT_EQ(found.pixels.size(), static_cast<size_t>(expected.num_elements()));
    double largest = 0;
    for (size_t i = 0; i < found.pixels.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(found.pixels[i]) - expected.elements<float>()[i]));
    }
    EXPECT_LT(largest, 1e-3) << height << " x " << width;  // On a scale of 255; both results are rounded to float.
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, ResampleTest, testing::ValuesIn(ResizeFilterNames()));

TEST(ResampleTest, LongPicturesTakeNoMoreMemoryThanTheResult) {
  // With the width of the intermediate frame it would need 400 MB.
  const Image image = Plain(400'000, 1, {50});
  for (const std::string& name : ResizeFilterNames()) {
    const Picture found = Resample(image, {0, 0, image.height, 1}, 2, 256, ParseResizeFilter(name).value());
    for (const float pixel : found.pixels) ASSERT_NEAR(pixel, 50, 0.01) << name;
  }
}

TEST(ResampleTest, TakesOnlyTheWindow) {
  Image image = Plain(6, 6, {9});
  for (int64_t y = 2; y < 4; ++y) {
    for (int64_t x = 1; x < 4; ++x) *image.At(y, x) = 200;
  }
  for (const std::string& name : ResizeFilterNames()) {
    const Picture found = Resample(image, {2, 1, 2, 3}, 4, 5, ParseResizeFilter(name).value());
    for (const float pixel : found.pixels) EXPECT_NEAR(pixel, 200, 1e-3) << name;
  }
}

PictureConverter Converter(const Preprocessing& preprocessing, const PictureFormat& format) {
  absl::StatusOr<PictureConverter> converter = PictureConverter::Create(preprocessing, format);
  EXPECT_TRUE(converter.ok()) << converter.status();
  return *converter;
}

TEST(PictureConverterTest, ScalesAndOrdersChannels) {
  Preprocessing preprocessing;
  preprocessing.order = ChannelOrder::kBgr;
  preprocessing.range = std::make_pair(0.0, 255.0);
  preprocessing.mean = {104, 117, 123};  // In the order that the model reads: blue, green, red.
  const PictureConverter converter = Converter(preprocessing, {DType::kFloat, 1, 2, 3, PictureLayout::kChannelsLast});
  const Picture picture = converter.Fit(Plain(3, 3, {10, 20, 30}));
  const Tensor tensor = converter.ToTensor({picture}).value();
  EXPECT_EQ(tensor.shape(), Shape({1, 1, 2, 3}));
  const float* found = tensor.data<float>();
  EXPECT_THAT(std::vector<float>(found, found + 3), ElementsAre(FloatEq(-74), FloatEq(-97), FloatEq(-113)));
}

TEST(PictureConverterTest, ChannelsFirst) {
  const PictureConverter converter = Converter({}, {DType::kFloat, 2, 2, 3, PictureLayout::kChannelsFirst});
  const Tensor tensor = converter.ToTensor({converter.Fit(Plain(2, 2, {0, 51, 255}))}).value();
  EXPECT_EQ(tensor.shape(), Shape({1, 3, 2, 2}));
  const float* found = tensor.data<float>();
  EXPECT_THAT(std::vector<float>(found, found + 12),
              testing::Pointwise(FloatNear(1e-6F), {0.F, 0.F, 0.F, 0.F, .2F, .2F, .2F, .2F, 1.F, 1.F, 1.F, 1.F}));
}

TEST(PictureConverterTest, IntegersTakeAllThatTheTypeHolds) {
  const Image image = Plain(1, 1, {0, 128, 255});
  const PictureConverter bytes = Converter({}, {DType::kUint8, 1, 1, 3, PictureLayout::kChannelsLast});
  EXPECT_EQ(bytes.ToTensor({bytes.Fit(image)}).value().bytes(), absl::string_view("\x00\x80\xff", 3));
  const PictureConverter codes = Converter({}, {DType::kInt8, 1, 1, 3, PictureLayout::kChannelsLast});
  EXPECT_EQ(codes.ToTensor({codes.Fit(image)}).value().bytes(), absl::string_view("\x80\x00\x7f", 3));
}

TEST(PictureConverterTest, GreyBothWays) {
  const PictureConverter grey = Converter({}, {DType::kFloat, 1, 1, 1, PictureLayout::kChannelsLast});
  EXPECT_NEAR(grey.Fit(Plain(2, 2, {100, 200, 50})).pixels[0], 0.299 * 100 + 0.587 * 200 + 0.114 * 50, 1e-3);
  const PictureConverter colour = Converter({}, {DType::kFloat, 1, 1, 3, PictureLayout::kChannelsLast});
  EXPECT_THAT(colour.Fit(Plain(2, 2, {77})).pixels, ElementsAre(77, 77, 77));
}

TEST(PictureConverterTest, FitsTheFrame) {
  // Left half dark, right half bright, twice as wide as high.
  Image image = Plain(4, 8, {0});
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 4; x < 8; ++x) *image.At(y, x) = 200;
  }
  const PictureFormat format{DType::kFloat, 4, 4, 1, PictureLayout::kChannelsLast};
  Preprocessing preprocessing;
  preprocessing.filter = ResizeFilter::kArea;
  const auto row = [&](ImageFit fit, int64_t y) {
    preprocessing.fit = fit;
    preprocessing.padding = 9;
    const Picture picture = Converter(preprocessing, format).Fit(image);
    return std::vector<float>(picture.At(y, 0), picture.At(y, 0) + 4);
  };
  EXPECT_THAT(row(ImageFit::kStretch, 0), ElementsAre(0, 0, 200, 200));
  EXPECT_THAT(row(ImageFit::kCrop, 0), ElementsAre(0, 0, 200, 200));
  EXPECT_THAT(row(ImageFit::kLetterbox, 0), ElementsAre(9, 9, 9, 9));
  EXPECT_THAT(row(ImageFit::kLetterbox, 1), ElementsAre(0, 0, 200, 200));
  EXPECT_THAT(row(ImageFit::kLetterbox, 3), ElementsAre(9, 9, 9, 9));
  *image.At(1, 0) = 255;  // Outside the centre crop.
  EXPECT_THAT(row(ImageFit::kCrop, 1), ElementsAre(0, 0, 200, 200));
  EXPECT_THAT(row(ImageFit::kStretch, 1), ElementsAre(127.5, 0, 200, 200));
}

TEST(PictureConverterTest, TensorsBecomePicturesAgain) {
  Preprocessing preprocessing;
  preprocessing.order = ChannelOrder::kBgr;
  preprocessing.range = std::make_pair(-1.0, 1.0);
  preprocessing.mean = {0.1, 0.2, 0.3};
  preprocessing.deviation = {2};
  for (const PictureLayout layout : {PictureLayout::kChannelsLast, PictureLayout::kChannelsFirst}) {
    const PictureConverter converter = Converter(preprocessing, {DType::kFloat, 13, 11, 3, layout});
    const Picture picture = converter.Fit(RecordedImage());
    const std::vector<Picture> again = converter.ToPictures(converter.ToTensor({picture, picture}).value()).value();
    ASSERT_EQ(again.size(), 2);
    for (size_t i = 0; i < picture.pixels.size(); ++i) ASSERT_NEAR(again[1].pixels[i], picture.pixels[i], 1e-3);
  }
}

TEST(PictureConverterTest, ValuesThatAreNoPicturesAreRefused) {
  const PictureConverter converter = Converter({}, {DType::kFloat, 1, 2, 1, PictureLayout::kChannelsLast});
  for (const float wrong : {1.5F, -0.1F, std::nanf("")}) {
    const Tensor tensor = Tensor::FromVector<float>({1, 1, 2, 1}, {wrong, 0.5F});
    EXPECT_THAT(std::string(converter.ToPictures(tensor).status().message()), HasSubstr("--image_range")) << wrong;
  }
}

TEST(PictureConverterTest, SettingsThatDoNotFit) {
  const PictureFormat colour{DType::kFloat, 2, 2, 3, PictureLayout::kChannelsLast};
  const auto message = [&](const Preprocessing& preprocessing) {
    return std::string(PictureConverter::Create(preprocessing, colour).status().message());
  };
  Preprocessing preprocessing;
  preprocessing.order = ChannelOrder::kGray;
  EXPECT_EQ(message(preprocessing), "--image_channels: found gray, the model takes 3 channels");
  preprocessing = {};
  preprocessing.mean = {1, 2};
  EXPECT_THAT(message(preprocessing), HasSubstr("--image_mean: found 2 numbers, expected 1, or 3"));
  preprocessing = {};
  preprocessing.deviation = {0};
  EXPECT_THAT(message(preprocessing), HasSubstr("--image_std: found 0"));
  preprocessing = {};
  preprocessing.range = std::make_pair(1.0, 1.0);
  EXPECT_THAT(message(preprocessing), HasSubstr("--image_range: found 1,1"));
  preprocessing = {};
  preprocessing.crop_fraction = 0;
  EXPECT_THAT(message(preprocessing), HasSubstr("--image_crop_fraction"));
  preprocessing = {};
  preprocessing.padding = 256;
  EXPECT_THAT(message(preprocessing), HasSubstr("--image_padding"));
}

TEST(FormatOfInputTest, ReadsTheShape) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()");
  Node* node = graph->Find("x");
  const Endpoint input{"x", node, 0};
  const auto format = [&](const Shape& shape, std::optional<std::pair<int64_t, int64_t>> size = std::nullopt) {
    node->SetAttr("shape", AttrValue::OfShape(shape));
    return FormatOfInput(input, size);
  };
  EXPECT_EQ(format({kUnknownDim, 5, 6, 3})->width, 6);
  EXPECT_EQ(format({1, 3, 5, 6})->layout, PictureLayout::kChannelsFirst);
  EXPECT_EQ(format({1, 3, 5, 6})->height, 5);
  EXPECT_EQ(format({1, kUnknownDim, kUnknownDim, 1}, std::make_pair(7, 8))->height, 7);
  EXPECT_THAT(std::string(format({1, kUnknownDim, 4, 1}).status().message()), HasSubstr("--image_size"));
  EXPECT_THAT(std::string(format({1, 4, 4, 1}, std::make_pair(4, 5)).status().message()), HasSubstr("4 x 4"));
  EXPECT_THAT(std::string(format({1, 4, 4, 7}).status().message()), HasSubstr("1 or 3 channels"));
  EXPECT_THAT(std::string(format({10}).status().message()), HasSubstr("four dimensions"));
  EXPECT_THAT(std::string(format({1, 0, 4, 1}).status().message()), HasSubstr("no pixels"));
  EXPECT_THAT(std::string(format({1, 1 << 20, 1 << 20, 3}).status().message()), HasSubstr("expected at most 33554432"));
  node->SetAttr("dtype", AttrValue::Type(DType::kInt64));
  EXPECT_THAT(std::string(format({1, 4, 4, 1}).status().message()), HasSubstr("takes int64"));
}

}  // namespace
}  // namespace permafrost
