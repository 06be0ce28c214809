// Tests of the decoders behind the Decode kernels: truncated and malicious files, and limits. The pixels are compared
// with TensorFlow's in tests/kernels (vectors/decoding.pbtxt).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "io/file_system.h"
#include "runtime_check/images/image_decoding.h"
#include "tests/shared_models.h"
#include "tools/images/jpeg_codec.h"

namespace permafrost {
namespace {

using testing::HasSubstr;

struct Decoded {
  PictureSize size;
  std::vector<uint8_t> pixels;
  bool was_allocated = false;

  auto Allocator() {
    return [this](const PictureSize& wanted) -> absl::StatusOr<uint8_t*> {
      was_allocated = true;
      size = wanted;
      pixels.assign(static_cast<size_t>(size.frames * size.height * size.width * size.channels), 0xEE);
      return pixels.data();
    };
  }
};

std::string Content(const std::string& name) {
  return RealFileSystem().ReadFile(DataFile("tests/images/recorded/" + name)).value();
}

// Two frames: 5 x 4 pixels, and 3 x 2 of them drawn again, with one transparent colour.
std::string Animation() {
  return absl::HexStringToBytes(
      "47494638396128001e008100000a141e28323c46505a646e7821fe0474657874002c0000000005000400000209443400b23a1294040500"
      "21f904050a0001002c0100010003000200000203440458003b");
}

// The position of the first frame's height in Animation(), and the bytes of its descriptor before.
constexpr size_t kFrameWidth = 38, kFrameHeight = 40;

TEST(GifTest, ReadsFramesOrTheFirst) {
  Decoded all, first;
  ASSERT_TRUE(DecodeGifPixels(Animation(), {}, all.Allocator()).ok());
  EXPECT_EQ(all.size.frames, 2);
  EXPECT_EQ(all.size.height, 4);
  EXPECT_EQ(all.size.width, 5);
  GifOptions options;
  options.first_frame_only = true;
  ASSERT_TRUE(DecodeGifPixels(Animation(), options, first.Allocator()).ok());
  EXPECT_EQ(first.size.frames, 1);
  EXPECT_EQ(std::vector<uint8_t>(all.pixels.begin(), all.pixels.begin() + 60), first.pixels);
  EXPECT_NE(std::vector<uint8_t>(all.pixels.begin() + 60, all.pixels.end()), first.pixels);
  options = {};
  options.rejects_animations = true;
  EXPECT_EQ(DecodeGifPixels(Animation(), options, first.Allocator()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(GifTest, CutsGiveCompleteFramesOrAnError) {
  const std::string whole = Animation();
  for (size_t size = 4; size < whole.size(); ++size) {
    Decoded decoded;
    const absl::Status status = DecodeGifPixels(whole.substr(0, size), {}, decoded.Allocator());
    if (status.ok()) {
      EXPECT_EQ(decoded.size.frames, size + 1 < whole.size() ? 1 : 2) << size;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
      EXPECT_THAT(std::string(status.message()), HasSubstr("damaged GIF")) << size;
    }
  }
}

TEST(GifTest, ChangedBytesDoNoHarm) {
  const std::string whole = Animation();
  for (size_t i = 4; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[i] = static_cast<char>(value);
      Decoded decoded;
      GifOptions options;
      options.max_pixels = 1 << 16;
      DecodeGifPixels(changed, options, decoded.Allocator()).IgnoreError();
    }
  }
}

TEST(GifTest, HugeDimensionsAreRefusedBeforeMemoryIsTaken) {
  std::string file = Animation();
  file[kFrameWidth] = '\xff';
  file[kFrameWidth + 1] = '\x7f';
  file[kFrameHeight + 1] = '\x02';
  Decoded decoded;
  const absl::Status status = DecodeGifPixels(file, {}, decoded.Allocator());
  EXPECT_THAT(std::string(status.message()), HasSubstr("bytes are too few for 32767 x 516 pixels"));
  file[kFrameHeight + 1] = '\x7f';
  EXPECT_EQ(DecodeGifPixels(file, {}, decoded.Allocator()).code(), absl::StatusCode::kResourceExhausted);
  // Each frame is as large as the largest.
  GifOptions options;
  options.max_pixels = 39;
  EXPECT_EQ(DecodeGifPixels(Animation(), options, decoded.Allocator()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(decoded.was_allocated);
}

TEST(JpegTest, MissingRowsAreBlackIfAcceptable) {
  Image image = MakeGrid<uint8_t>(80, 60, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i / 7);
  const std::string whole = EncodeJpeg(image, 90).value();
  Decoded complete, cut;
  JpegOptions options;
  ASSERT_TRUE(DecodeJpegPixels(whole, options, complete.Allocator()).ok());
  options.acceptable_fraction = 0.1f;
  const absl::string_view half = absl::string_view(whole).substr(0, whole.size() * 3 / 4);
  ASSERT_TRUE(DecodeJpegPixels(half, options, cut.Allocator()).ok());
  ASSERT_EQ(cut.pixels.size(), complete.pixels.size());
  const size_t row = static_cast<size_t>(cut.size.width * cut.size.channels);
  EXPECT_TRUE(std::equal(cut.pixels.begin(), cut.pixels.begin() + static_cast<int64_t>(row), complete.pixels.begin()));
  EXPECT_EQ(std::vector<uint8_t>(cut.pixels.end() - static_cast<int64_t>(row), cut.pixels.end()),
            std::vector<uint8_t>(row, 0));
  options.acceptable_fraction = 0.99f;
  EXPECT_EQ(DecodeJpegPixels(half, options, cut.Allocator()).code(), absl::StatusCode::kDataLoss);
  options.fills_missing_data = true;
  options.is_strict = false;
  EXPECT_TRUE(DecodeJpegPixels(half, options, cut.Allocator()).ok());
}

TEST(JpegTest, MemoryForCoefficientsOfProgressiveFilesIsReported) {
  Decoded baseline, progressive;
  ASSERT_TRUE(DecodeJpegPixels(Content("colour.jpg"), {}, baseline.Allocator()).ok());
  EXPECT_EQ(baseline.size.working_bytes, 0);
  ASSERT_TRUE(DecodeJpegPixels(Content("progressive.jpg"), {}, progressive.Allocator()).ok());
  EXPECT_GE(progressive.size.working_bytes, progressive.size.height * progressive.size.width * 2);
  const auto refuse = [](const PictureSize&) -> absl::StatusOr<uint8_t*> {
    return absl::ResourceExhaustedError("no memory");
  };
  EXPECT_EQ(DecodeJpegPixels(Content("progressive.jpg"), {}, refuse).message(), "no memory");
}

// Repeats the last scan of a progressive file.
TEST(JpegTest, ManyScansAreAnError) {
  const std::string file = Content("progressive.jpg");
  const size_t last = file.rfind("\xff\xda");
  ASSERT_NE(last, std::string::npos);
  const std::string scan = file.substr(last, file.size() - last - 2);
  const auto decode = [&](int more) {
    std::string longer = file.substr(0, file.size() - 2);
    for (int i = 0; i < more; ++i) longer += scan;
    JpegOptions options;
    options.is_strict = false;
    Decoded decoded;
    return DecodeJpegPixels(longer + "\xff\xd9", options, decoded.Allocator());
  };
  EXPECT_TRUE(decode(100).ok());
  EXPECT_THAT(std::string(decode(200).message()), HasSubstr("Invalid scan script at entry 200"));
}

// Text whose data and checksum are wrong.
TEST(PngTest, TextIsSkipped) {
  const std::string file = Content("colour.png");
  constexpr size_t kHeader = 33;  // Signature and IHDR.
  const std::string damaged_text("\0\0\0\x05zTXtk\0\0\xff\xff\0\0\0\0", 17);
  Decoded plain, with_text;
  ASSERT_TRUE(DecodePngPixels(file, {}, plain.Allocator()).ok());
  ASSERT_TRUE(
      DecodePngPixels(file.substr(0, kHeader) + damaged_text + file.substr(kHeader), {}, with_text.Allocator()).ok());
  EXPECT_EQ(plain.pixels, with_text.pixels);
}

TEST(JpegTest, WindowsOutsideOfThePictureAreErrors) {
  const std::string file = Content("colour.jpg");
  Decoded whole;
  ASSERT_TRUE(DecodeJpegPixels(file, {}, whole.Allocator()).ok());
  const int64_t height = whole.size.height, width = whole.size.width;
  JpegOptions options;
  options.crops = true;
  const int64_t most = int64_t{1} << 31;
  for (const CropWindow& window : std::vector<CropWindow>{{-1, 0, 2, 2},
                                                          {0, -1, 2, 2},
                                                          {0, 0, 0, 2},
                                                          {0, 0, 2, 0},
                                                          {0, 0, height + 1, 2},
                                                          {1, 0, height, 2},
                                                          {0, 1, 2, width},
                                                          {most, 0, 2, 2},
                                                          {0, 0, most, 2}}) {
    options.window = window;
    Decoded decoded;
    const absl::Status status = DecodeJpegPixels(file, options, decoded.Allocator());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << window.y << " " << window.x;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the crop window has"));
  }
}

// Every window of a changed file, since cropping uses code of the library that complete pictures do not.
TEST(JpegTest, ChangedBytesOfCroppedFilesDoNoHarm) {
  const std::string whole = Content("colour.jpg");
  JpegOptions options;
  options.crops = true;
  options.is_strict = false;
  options.window = {3, 5, 4, 6};
  for (size_t i = 3; i < whole.size(); i += 3) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    Decoded decoded;
    DecodeJpegPixels(changed, options, decoded.Allocator()).IgnoreError();
  }
}

}  // namespace
}  // namespace permafrost
