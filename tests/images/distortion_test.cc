// Tests of distortions: the effect of each on a suitable picture, and their names.
#include "tools/images/distortion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace permafrost {
namespace {

using testing::Each;
using testing::HasSubstr;

Picture Apply(const std::string& text, const Picture& picture, uint64_t seed = 1) {
  const absl::StatusOr<std::vector<Distortion>> distortions = ParseDistortions(text);
  EXPECT_TRUE(distortions.ok()) << distortions.status();
  return Distort(picture, distortions->at(0), seed);
}

Picture Plain(int64_t side, float value, int64_t channels = 1) {
  Picture picture = MakeGrid<float>(side, side, channels);
  std::fill(picture.pixels.begin(), picture.pixels.end(), value);
  return picture;
}

double Mean(const Picture& picture) {
  double sum = 0;
  for (const float pixel : picture.pixels) sum += pixel;
  return sum / static_cast<double>(picture.pixels.size());
}

TEST(DistortionTest, PlainPicturesStayPlain) {
  for (const char* text : {"blur", "off_center", "fisheye", "jpeg"}) {
    for (const int64_t channels : {1, 3}) {
      const Picture picture = Plain(16, 120, channels);
      EXPECT_THAT(Apply(text, picture).pixels, Each(testing::FloatNear(120, 1.01F))) << text;
    }
  }
}

TEST(DistortionTest, BlurSpreadsAPointAsAGaussian) {
  Picture picture = Plain(41, 0);
  *picture.At(20, 20) = 255;
  for (int64_t y = 19; y < 22; ++y) {
    for (int64_t x = 19; x < 22; ++x) *picture.At(y, x) = 255;
  }
  const Picture blurred = Apply("blur=0.05", picture);  // A standard deviation of 2.05 pixels.
  // The share 9 / (2 pi sigma^2) of a square of 3 x 3, minus the loss at the corners.
  EXPECT_NEAR(*blurred.At(20, 20), 255 * std::pow(std::erf(1.5 / 2.05 / std::sqrt(2.0)), 2), 3);
  EXPECT_EQ(*blurred.At(20, 17), *blurred.At(20, 23));
  EXPECT_EQ(*blurred.At(17, 20), *blurred.At(20, 17));
  EXPECT_EQ(*blurred.At(0, 0), 0);
}

TEST(DistortionTest, DarkHalvesTheLightAtEachStop) {
  // Full brightness, reduced by one stop: 255 x 2^(-1 / 2.2).
  EXPECT_THAT(Apply("dark=1", Plain(2, 255)).pixels, Each(186));
  EXPECT_THAT(Apply("dark=2.2", Plain(2, 200)).pixels, Each(100));
}

TEST(DistortionTest, OffCenterMovesTowardsACorner) {
  Picture picture = Plain(11, 10);
  *picture.At(5, 5) = 200;
  int corners[4] = {};
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const Picture moved = Apply("off_center=0.272727273", picture, seed);  // 3 pixels.
    int corner = 0, hits = 0;
    for (const int64_t y : {2, 8}) {
      for (const int64_t x : {2, 8}) {
        if (std::abs(*moved.At(y, x) - 200) < 2) {
          ++corners[corner];
          ++hits;
        }
        ++corner;
      }
    }
    EXPECT_EQ(hits, 1) << seed;
  }
  EXPECT_THAT(corners, Each(testing::Gt(0)));
}

TEST(DistortionTest, FisheyeLeavesTheMiddleAndDrawsTheRestIn) {
  Picture picture = Plain(21, 0);
  *picture.At(10, 10) = 255;
  for (int64_t y = 0; y < 21; ++y) *picture.At(y, 18) = 100;
  const Picture bent = Apply("fisheye=0.5", picture);
  EXPECT_EQ(*bent.At(10, 10), 255);
  // The pixel that was 8 to the right: r (1 + r^2 / 200 / 2) = 8 at r = 7.1.
  EXPECT_GT(*bent.At(10, 17), *bent.At(10, 18));
  EXPECT_GT(*bent.At(10, 17), 50);
}

TEST(DistortionTest, NoiseHasTheDeviationThatIsAskedFor) {
  const Picture noisy = Apply("noise=0.05", Plain(200, 128));
  double sum = 0;
  for (const float pixel : noisy.pixels) sum += (pixel - 128.0) * (pixel - 128.0);
  EXPECT_NEAR(std::sqrt(sum / static_cast<double>(noisy.pixels.size())), 0.05 * 255, 0.2);
  EXPECT_NEAR(Mean(noisy), 128, 0.3);
  EXPECT_EQ(noisy.pixels, Apply("noise=0.05", Plain(200, 128)).pixels);
  EXPECT_NE(noisy.pixels, Apply("noise=0.05", Plain(200, 128), 2).pixels);
}

TEST(DistortionTest, JpegLosesMoreAtALowerQuality) {
  Picture picture = MakeGrid<float>(32, 32, 3);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<float>((i * i / 7) % 256);
  double before = -1;
  for (const char* text : {"jpeg=95", "jpeg=40", "jpeg=5"}) {
    const Picture changed = Apply(text, picture);
    double sum = 0;
    for (size_t i = 0; i < picture.pixels.size(); ++i) sum += std::abs(changed.pixels[i] - picture.pixels[i]);
    EXPECT_GT(sum, before) << text;
    before = sum;
  }
}

TEST(DistortionTest, ResultsAreWholeNumbersOfAByte) {
  Picture picture = MakeGrid<float>(9, 14, 3);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<float>(i % 256) + 0.3F;
  const std::vector<Distortion> all = ParseDistortions("blur,dark,off_center,fisheye,noise,jpeg").value();
  EXPECT_EQ(all.size(), 18);
  for (const Distortion& distortion : all) {
    for (const float pixel : Distort(picture, distortion, 3).pixels) {
      ASSERT_TRUE(pixel >= 0 && pixel <= 255 && pixel == std::floor(pixel)) << distortion.ToString();
    }
  }
}

TEST(DistortionTest, OnePixelIsEnough) {
  for (const DistortionKind& kind : DistortionKinds()) {
    for (const double strength : {kind.least, kind.most}) {
      EXPECT_EQ(Distort(Plain(1, 50), {&kind, strength}, 1).pixels.size(), 1) << kind.name;
    }
  }
}

TEST(DistortionTest, Names) {
  const std::vector<Distortion> distortions = ParseDistortions(" dark=0.5:4 , jpeg ").value();
  ASSERT_EQ(distortions.size(), 5);
  EXPECT_EQ(distortions[1].ToString(), "dark=4");
  EXPECT_EQ(distortions[4].ToString(), "jpeg=10");
  const auto message = [](absl::string_view text) { return std::string(ParseDistortions(text).status().message()); };
  EXPECT_THAT(message("blurr"), HasSubstr("did you mean 'blur'?"));
  EXPECT_THAT(message("jpeg=101"), HasSubstr("found jpeg=101, expected 1 to 100"));
  EXPECT_THAT(message("dark=deep"), HasSubstr("found dark=deep, expected 0.01 to 10"));
  EXPECT_THAT(message("dark=nan"), HasSubstr("expected 0.01 to 10"));
  EXPECT_THAT(message("dark=1,dark=2"), HasSubstr("twice"));
  EXPECT_THAT(message(","), HasSubstr("found nothing"));
}

}  // namespace
}  // namespace permafrost
