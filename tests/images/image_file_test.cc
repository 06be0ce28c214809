// Tests of picture files: pixels equal to TensorFlow's, and malicious files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
// Included after <cstdio>, because it needs FILE.
#include <jpeglib.h>
#include <png.h>

#include "absl/strings/str_cat.h"
#include "io/file_system.h"
#include "tests/shared_models.h"
#include "tools/images/image_file.h"
#include "tools/images/jpeg_codec.h"
#include "tools/images/png_codec.h"
#include "tools/model/model_inputs.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

std::string Recorded(const std::string& name) { return DataFile("tests/images/recorded/" + name); }

std::string Content(const std::string& name) { return RealFileSystem().ReadFile(Recorded(name)).value(); }

Image Gradient(int64_t height, int64_t width, int64_t channels) {
  Image image = MakeGrid<uint8_t>(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7);
  return image;
}

std::string WritePng(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr), 0);
  std::string bytes(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr), 0);
  bytes.resize(size);
  return bytes;
}

// Four inks, stored directly or, with Adobe's marker, inverted.
std::string WriteCmyk(const std::vector<uint8_t>& inks, int width, int height, bool adobe) {
  jpeg_compress_struct codec = {};
  jpeg_error_mgr errors;
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &bytes, &size);
  codec.image_width = static_cast<JDIMENSION>(width);
  codec.image_height = static_cast<JDIMENSION>(height);
  codec.input_components = 4;
  codec.in_color_space = JCS_CMYK;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 100, TRUE);
  codec.write_Adobe_marker = adobe ? TRUE : FALSE;
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    auto* row = const_cast<JSAMPLE*>(inks.data() + codec.next_scanline * static_cast<size_t>(width) * 4);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  std::string result(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&codec);
  std::free(bytes);
  return result;
}

class RecordedImageTest : public testing::TestWithParam<const char*> {};

TEST_P(RecordedImageTest, HasThePixelsThatTensorFlowReads) {
  const std::string name = GetParam();
  const absl::StatusOr<Image> image = ReadImageFile(RealFileSystem(), Recorded(name));
  ASSERT_TRUE(image.ok()) << image.status();
  const Tensor expected = ReadNpyFile(RealFileSystem(), Recorded(name + ".npy")).value();
  ASSERT_EQ(Shape({image->height, image->width, image->channels}), expected.shape());
  const absl::string_view found(reinterpret_cast<const char*>(image->pixels.data()), image->pixels.size());
  EXPECT_EQ(found, expected.bytes());
}

INSTANTIATE_TEST_SUITE_P(Files, RecordedImageTest,
                         testing::Values("colour.png", "grey.png", "sixteen_bits.png", "alpha.png", "colour.jpg",
                                         "progressive.jpg", "grey.jpg"));

TEST(PngTest, ReadsWhatLibpngWrites) {
  for (const int64_t channels : {1, 3}) {
    const Image image = Gradient(5, 7, channels);
    const absl::StatusOr<Image> read = DecodePng(WritePng(image), {});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->pixels, image.pixels);
    EXPECT_EQ(read->channels, channels);
  }
}

TEST(PngTest, EveryCutIsAnErrorOfOneLine) {
  const std::string whole = Content("colour.png");
  for (size_t size = 8; size + 12 < whole.size(); size += 13) {  // The last 12 bytes are only the end marker.
    const absl::Status status = DecodePng(absl::string_view(whole).substr(0, size), {}).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("damaged PNG"));
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
}

TEST(PngTest, ChangedBytesDoNoHarm) {
  const std::string whole = Content("alpha.png");
  for (size_t i = 8; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    const absl::StatusOr<Image> image = DecodePng(changed, {});
    if (!image.ok()) continue;
    EXPECT_EQ(image->pixels.size(), static_cast<size_t>(image->height * image->width * image->channels));
  }
}

// Returns a file header with the given size and a correct checksum.
std::string PngHeader(uint32_t width, uint32_t height) {
  const auto number = [](uint32_t value) {
    return std::string({static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                        static_cast<char>(value)});
  };
  const std::string chunk = absl::StrCat("IHDR", number(width), number(height), std::string({8, 2, 0, 0, 0}));
  uint32_t crc = 0xffffffff;
  for (const char c : chunk) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  const std::string file = absl::StrCat("\x89PNG\r\n\x1a\n", number(13), chunk, number(~crc));
  return absl::StrCat(file, number(0), "IDAT", number(0x35af061e));
}

TEST(PngTest, HugeDimensionsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(DecodePng(PngHeader(900000, 900000), {}).status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status status = DecodePng(PngHeader(10000, 10000), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too few for 10000 x 10000 pixels"));
  ImageLimits limits;
  limits.max_pixels = 30;
  EXPECT_THAT(std::string(DecodePng(WritePng(Gradient(5, 7, 1)), limits).status().message()),
              HasSubstr("found 7 x 5 pixels, expected at most 30"));
}

TEST(JpegTest, EveryCutIsAnErrorOfOneLine) {
  for (const char* name : {"colour.jpg", "progressive.jpg"}) {
    const std::string whole = Content(name);
    for (size_t size = 3; size + 2 < whole.size(); size += 29) {
      const absl::Status status = DecodeJpeg(absl::string_view(whole).substr(0, size), {}).status();
      ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << name << " " << size;
      EXPECT_THAT(std::string(status.message()), HasSubstr("damaged JPEG"));
      EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    }
  }
}

TEST(JpegTest, ChangedBytesDoNoHarm) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "grey.jpg"}) {
    const std::string whole = Content(name);
    for (size_t i = 3; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0x55);
      const absl::StatusOr<Image> image = DecodeJpeg(changed, {});
      if (!image.ok()) continue;
      EXPECT_EQ(image->pixels.size(), static_cast<size_t>(image->height * image->width * image->channels));
    }
  }
}

TEST(JpegTest, HugeDimensionsAreRefusedBeforeMemoryIsTaken) {
  std::string file = Content("colour.jpg");
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) file[frame + i] = '\xfe';
  EXPECT_EQ(DecodeJpeg(file, {}).status().code(), absl::StatusCode::kResourceExhausted);
  for (size_t i = 5; i < 9; i += 2) file[frame + i] = '\x20';
  EXPECT_THAT(std::string(DecodeJpeg(file, {}).status().message()), HasSubstr("too few for"));
}

TEST(JpegTest, InksBecomeLight) {
  // A picture of one colour, which JPEG preserves within a few steps.
  std::vector<uint8_t> inks;
  for (int i = 0; i < 8 * 8; ++i) inks.insert(inks.end(), {200, 100, 40, 180});
  const auto first_pixel = [](const std::string& file) {
    const absl::StatusOr<Image> image = DecodeJpeg(file, {});
    EXPECT_TRUE(image.ok()) << image.status();
    return std::vector<int>(image->pixels.begin(), image->pixels.begin() + 3);
  };
  using testing::AllOf;
  using testing::ElementsAre;
  using testing::Ge;
  using testing::Le;
  const auto near = [](int value) { return AllOf(Ge(value - 3), Le(value + 3)); };
  EXPECT_THAT(first_pixel(WriteCmyk(inks, 8, 8, /*adobe=*/true)),
              ElementsAre(near(200 * 180 / 255), near(100 * 180 / 255), near(40 * 180 / 255)));
  EXPECT_THAT(first_pixel(WriteCmyk(inks, 8, 8, /*adobe=*/false)),
              ElementsAre(near(55 * 75 / 255), near(155 * 75 / 255), near(215 * 75 / 255)));
}

TEST(JpegTest, WritesWhatItReads) {
  const Image image = DecodePng(Content("colour.png"), {}).value();
  double before = 0;
  for (const int quality : {95, 30}) {
    const Image read = DecodeJpeg(EncodeJpeg(image, quality).value(), {}).value();
    ASSERT_EQ(read.pixels.size(), image.pixels.size());
    double sum = 0;
    for (size_t i = 0; i < read.pixels.size(); ++i) sum += std::abs(read.pixels[i] - image.pixels[i]);
    const double mean = sum / static_cast<double>(read.pixels.size());
    EXPECT_GT(mean, before);
    EXPECT_LT(mean, 30);
    before = mean;
  }
}

TEST(ImageFileTest, ErrorsNameTheFile) {
  FileSystem& files = RealFileSystem();
  const auto message = [&](const std::string& path) {
    return std::string(ReadImageFile(files, path).status().message());
  };
  const std::string npy = Recorded("source.npy");
  EXPECT_EQ(message(npy), absl::StrCat("'", npy, "': neither a PNG nor a JPEG file"));
  EXPECT_THAT(message("no/such.png"), HasSubstr("'no/such.png'"));
  const std::string empty = testing::TempDir() + "/empty.png";
  ASSERT_TRUE(files.NewWriter(empty).value()->Commit().ok());
  EXPECT_THAT(message(empty), HasSubstr("the file is empty"));
}

TEST(ImageFileTest, ExtensionsInAnyCase) {
  for (const char* name : {"a.png", "b/c.JPG", "d.Jpeg"}) EXPECT_TRUE(HasImageName(name)) << name;
  for (const char* name : {"a.gif", "png", "a.png.txt"}) EXPECT_FALSE(HasImageName(name)) << name;
}

}  // namespace
}  // namespace permafrost
