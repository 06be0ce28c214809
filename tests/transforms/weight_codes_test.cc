// Tests the guarantees of weight codes that golden cases do not cover, on larger tensors, and with threads.
#include "transforms/rewrites/weight_codes.h"

#include <atomic>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/channel_rows.h"
#include "transforms/rewrites/float_ranges.h"
#include "transforms/rewrites/weight_blocks.h"

namespace permafrost {
namespace {

Tensor Normal(Shape shape, int64_t channels, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    // Channels of different magnitudes.
    values[i] = normal(random) * std::pow(10.0f, static_cast<float>(static_cast<int64_t>(i) % channels % 5) - 3);
    if (random() % 8 == 0) values[i] = 0;
  }
  return Tensor::FromVector(std::move(shape), std::move(values));
}

CodeFormat PerChannel(CodeMode mode, int bits, int64_t channels) {
  CodeFormat format;
  format.mode = mode;
  format.bits = bits;
  format.channels = {channels, 1};
  format.keep_sums = true;
  return format;
}

class Formats : public testing::TestWithParam<CodeFormat> {};

TEST_P(Formats, KeepSumsZerosAndMostOfTheValues) {
  const CodeFormat& format = GetParam();
  const int64_t channels = format.channels.count;
  const Tensor values = Normal({3, 3, 40, channels}, channels, 1);
  ThreadTeam team(3);
  const absl::StatusOr<CodedTensor> coded = Encode(values, format, &team);
  ASSERT_TRUE(coded.ok()) << coded.status();
  ASSERT_EQ(coded->max.size(), static_cast<size_t>(channels));
  // Rounding errors have a root mean square of 1/sqrt(12) steps; the range spans about 7 standard deviations.
  const double expected = 7.5 / std::sqrt(12.0) / (1 << format.bits);
  EXPECT_LT(CodingError(values, *Decode(*coded, format), format.channels), 1.3 * expected);

  std::vector<double> sum(channels), step(channels);
  const auto code = [&](int64_t i) -> double {
    double found = 0;
    DispatchOn<QInt8, QUint8, QInt16, QUint16>(coded->codes.dtype(), [&](auto tag) {
      found = coded->codes.elements<typename decltype(tag)::type>()[i].value;
    });
    return found;
  };
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t c = i % channels;
    double decoded = 0;
    if (format.mode == CodeMode::kScaled) {
      step[c] = coded->max[c] / (format.bits == 16 ? 32767.0 : 127.0) * (format.bits == 4 ? 16 : 1);
      decoded = code(i) * step[c];
    } else {
      step[c] = (coded->max[c] - coded->min[c]) / ((1 << format.bits) - 1.0);
      decoded = code(i) * step[c] + coded->min[c];
    }
    if (values.elements<float>()[i] == 0) {
      EXPECT_NEAR(decoded, 0, 1e-6 * step[c]) << i;
    }
    sum[c] += decoded - values.elements<float>()[i];
  }
  for (int64_t c = 0; c < channels; ++c) EXPECT_LE(std::fabs(sum[c]), 0.51 * step[c]) << "channel " << c;
}

TEST_P(Formats, AreTheSameOnAnyNumberOfThreads) {
  const Tensor values = Normal({3, 3, 40, GetParam().channels.count}, GetParam().channels.count, 2);
  ThreadTeam one(1), many(8);
  const absl::StatusOr<CodedTensor> a = Encode(values, GetParam(), &one), b = Encode(values, GetParam(), &many);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(a->codes == b->codes);
  EXPECT_EQ(a->min, b->min);
  EXPECT_EQ(a->max, b->max);
}

INSTANTIATE_TEST_SUITE_P(All, Formats,
                         testing::Values(PerChannel(CodeMode::kScaled, 8, 33), PerChannel(CodeMode::kScaled, 16, 5),
                                         PerChannel(CodeMode::kMinCombined, 8, 17),
                                         PerChannel(CodeMode::kMinCombined, 16, 3)));

TEST(WeightCodes, FourBitsAreNotWorseThanRoundingToTheRange) {
  const Tensor values = Normal({3, 3, 40, 8}, 8, 3);
  const CodeFormat format = PerChannel(CodeMode::kScaled, 4, 8);
  ThreadTeam team(1);
  const absl::StatusOr<CodedTensor> coded = Encode(values, format, &team);
  ASSERT_TRUE(coded.ok()) << coded.status();
  EXPECT_LT(CodingError(values, *Decode(*coded, format), format.channels), 0.14);
}

TEST(WeightCodes, NibblesLieInHalves) {
  std::vector<QInt8> codes;
  for (const int code : {-8, -1, 0, 7, 1, 2, 3, 4}) codes.push_back({static_cast<int8_t>(code)});
  const absl::StatusOr<Tensor> packed = PackNibbles(Tensor::FromVector({2, 4}, codes), 1);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->shape(), Shape({2, 2}));
  std::vector<int> bytes;
  for (size_t i = 0; i < 4; ++i) bytes.push_back(packed->elements<int8_t>()[i] & 255);
  EXPECT_EQ(bytes, (std::vector<int>{0x08, 0x7f, 0x31, 0x42}));
}

TEST(ThreadTeam, RunsEachTaskOnceAndAgain) {
  for (const int threads : {0, 1, 2, 7}) {
    ThreadTeam team(threads);
    for (const size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> times(count);
      team.ForEach(count, [&](size_t i) { ++times[i]; });
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(times[i], 1) << threads << " threads, task " << i << " of " << count;
    }
    for (const size_t count : {size_t{0}, size_t{1}, 200 * kBlock + 3}) {
      std::atomic<size_t> covered{0};
      team.ForPieces(count, [&](size_t start, size_t end) {
        EXPECT_EQ(start % kBlock, 0u);
        covered += end - start;
      });
      EXPECT_EQ(covered, count);
    }
  }
}

TEST(ChannelRows, GatherAndScatterAreInverse) {
  std::vector<float> numbers(2 * 35 * 3);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Tensor values = Tensor::FromVector({2, 35, 3}, numbers);
  std::vector<float> out(numbers.size());
  ThreadTeam team(2);
  const ChannelRows<float> rows(values.elements<float>(), {35, 3});
  ASSERT_EQ(rows.size(), 6u);
  rows.ForEach(&team, reinterpret_cast<char*>(out.data()), [](int64_t channel, const float* row, float* result) {
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(row[i], (i / 3 * 35 + channel) * 3 + i % 3);
      result[i] = row[i] + 1;
    }
  });
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(out[i], numbers[i] + 1);
}

TEST(WeightBlocksTest, FindsDivisorsNearTheWantedLength) {
  const auto blocks = [](std::vector<int64_t> dims, int dim, int64_t wanted) {
    const std::optional<WeightBlocks> found = FindWeightBlocks(Shape(dims), dim, wanted);
    return found.has_value() ? std::vector<int64_t>{found->channels, found->count, found->block}
                             : std::vector<int64_t>();
  };
  EXPECT_EQ(blocks({64, 10}, 1, 32), (std::vector<int64_t>{10, 2, 32}));
  EXPECT_EQ(blocks({3, 3, 20, 8}, 3, 32), (std::vector<int64_t>{8, 6, 30}));
  EXPECT_EQ(blocks({10, 96}, 0, 32), (std::vector<int64_t>{10, 3, 32}));
  EXPECT_EQ(blocks({61, 10}, 1, 32), std::vector<int64_t>());  // A prime.
  EXPECT_EQ(blocks({32, 10}, 1, 32), (std::vector<int64_t>{10, 2, 16}));
  EXPECT_EQ(blocks({31, 10}, 1, 32), std::vector<int64_t>());  // One block.
  EXPECT_EQ(blocks({64, 10}, 1, 0), std::vector<int64_t>());
  EXPECT_EQ(blocks({64, 10, 4}, 1, 32), std::vector<int64_t>());  // Channels in the middle.
  EXPECT_EQ(blocks({64}, 0, 32), std::vector<int64_t>());
  EXPECT_EQ(blocks({0, 10}, 1, 32), std::vector<int64_t>());
}

TEST(WeightBlocksTest, BlocksAreMoreAccurateThanChannels) {
  ThreadTeam team(2);
  const Tensor values = Normal({128, 12}, 12, 3);
  const auto error = [&](const Tensor& decoded) { return CodingError(values, decoded, {12, 1}); };
  CodeFormat format;
  format.mode = CodeMode::kScaled;
  format.bits = 4;
  format.channels = {12, 1};
  const double by_channel = error(*Decode(*Encode(values, format, &team), format));
  double before = by_channel;
  for (const int64_t wanted : {64, 32, 16}) {
    const std::optional<WeightBlocks> blocks = FindWeightBlocks(values.shape(), 1, wanted);
    ASSERT_TRUE(blocks.has_value());
    const absl::StatusOr<BlockCodes> coded = EncodeBlocks(values, *blocks, false, &team);
    ASSERT_TRUE(coded.ok()) << coded.status();
    for (const float scale : coded->scales) EXPECT_EQ(ToFloat(ToBFloat16(scale)), scale);
    const absl::StatusOr<Tensor> decoded = DecodeBlocks(*coded, *blocks, values.shape());
    ASSERT_TRUE(decoded.ok());
    EXPECT_LT(error(*decoded), before);
    before = error(*decoded);
  }
  EXPECT_LT(before, 0.85 * by_channel);
}

}  // namespace
}  // namespace permafrost
