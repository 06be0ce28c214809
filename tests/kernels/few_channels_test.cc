// Compares loops over channels with sums in double precision, for every number of channels around the register size, on
// each instruction set of this machine.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/kernels/channel_rows.h"
#include "runtime_check/kernels/inner_loops.h"

namespace permafrost {
namespace {

constexpr float kGuard = -77;

std::vector<float> Random(int64_t count, std::mt19937* generator) {
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(*generator);
  return values;
}

class FewChannelsTest : public testing::TestWithParam<const InnerLoops*> {};

TEST_P(FewChannelsTest, DepthwiseEqualsSumsInDoublePrecision) {
  const InnerLoops& loops = *GetParam();
  std::mt19937 generator(1);
  constexpr int64_t kTaps = 3;
  for (int64_t channels = 1; channels <= 2 * loops.vector_floats + 13; ++channels) {
    for (const int64_t pixels : {1, 4, 7}) {
      const int64_t width = pixels + kTaps - 1;
      DepthwiseWindow w;
      w.channels = channels;
      w.taps_y = w.taps_x = kTaps;
      w.tap_step = w.pixel_step = w.filter_tap_step = channels;
      w.row_step = width * channels;
      w.filter_row_step = kTaps * channels;
      const std::vector<float> input = Random(kTaps * width * channels, &generator);
      const std::vector<float> filter = Random(kTaps * kTaps * channels, &generator);
      std::vector<float> output(static_cast<size_t>(pixels * channels + 1), kGuard);
      loops.depthwise(w, pixels, input.data(), filter.data(), output.data());
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (int64_t y = 0; y < kTaps; ++y) {
            for (int64_t x = 0; x < kTaps; ++x) {
              sum += static_cast<double>(input[static_cast<size_t>(y * w.row_step + (p + x) * channels + c)]) *
                     static_cast<double>(filter[static_cast<size_t>((y * kTaps + x) * channels + c)]);
            }
          }
          ASSERT_NEAR(output[static_cast<size_t>(p * channels + c)], sum, 1e-5)
              << channels << " channels, pixel " << p << " of " << pixels << ", channel " << c;
        }
      }
      EXPECT_EQ(output.back(), kGuard) << channels << " channels";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, FewChannelsTest, testing::ValuesIn(SupportedInnerLoops()),
                         [](const testing::TestParamInfo<const InnerLoops*>& info) {
                           return std::string(info.param->name);
                         });

// Blocks of several rows end at row boundaries, and the last block may have fewer rows.
TEST(ChannelRowsTest, EachRowGetsTheBias) {
  std::mt19937 generator(1);
  for (const int64_t channels : {1, 2, 7, 8, 85, 127, 128, 129, 300}) {
    for (const int64_t rows : {0, 1, 2, 5, 36, 513}) {
      const std::vector<float> x = Random(rows * channels, &generator), bias = Random(channels, &generator);
      std::vector<float> y(x);
      y.push_back(kGuard);
      AddToRows(rows, channels, y.data(), bias.data(), y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i], x[i] + bias[i % static_cast<size_t>(channels)]) << rows << " rows of " << channels << ", " << i;
      }
      EXPECT_EQ(y.back(), kGuard);
    }
  }
}

}  // namespace
}  // namespace permafrost
