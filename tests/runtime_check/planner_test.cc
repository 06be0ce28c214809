// Tests of the placement of buffers: live buffers never overlap, and little more memory is used than needed.
#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "runtime_check/planning/buffer_placement.h"

namespace permafrost {
namespace {

void ExpectSound(const std::vector<Buffer>& buffers, int64_t total) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    EXPECT_EQ(a.offset % kBufferAlignment, 0);
    EXPECT_GE(a.offset, 0);
    EXPECT_LE(a.offset + a.bytes, total);
    for (size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const bool live_together = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      ASSERT_FALSE(live_together && overlap) << i << " and " << j;
    }
  }
}

std::vector<Buffer> RandomBuffers(int count, int positions, std::mt19937* random) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>((*random)() % positions);
    const int last = std::min<int>(positions, first + static_cast<int>((*random)() % 8));
    buffers.push_back({static_cast<int64_t>((*random)() % 5000), first, last, 0});
  }
  return buffers;
}

TEST(PlannerTest, RandomLifetimesDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers = RandomBuffers(static_cast<int>(random() % 100), 40, &random);
    const auto total = PlaceBuffers(&buffers);
    ASSERT_TRUE(total.ok()) << total.status();
    ExpectSound(buffers, *total);
  }
}

// More buffers than are placed by size.
TEST(PlannerTest, ManyBuffersDoNotOverlap) {
  std::mt19937 random(2);
  std::vector<Buffer> buffers = RandomBuffers(6000, 3000, &random);
  const auto total = PlaceBuffers(&buffers);
  ASSERT_TRUE(total.ok()) << total.status();
  ExpectSound(buffers, *total);
}

TEST(PlannerTest, ChainTakesTwoBuffers) {
  for (const int length : {10, 10000}) {
    std::vector<Buffer> chain;
    for (int i = 0; i < length; ++i) chain.push_back({1024, i, i + 1, 0});
    const auto total = PlaceBuffers(&chain);
    ASSERT_TRUE(total.ok());
    EXPECT_EQ(*total, 2048) << length;
  }
}

TEST(PlannerTest, SizesBeyondInt64AreAnError) {
  std::vector<Buffer> buffers = {{INT64_MAX / 2, 0, 1, 0}, {INT64_MAX / 2, 2, 3, 0}, {4096, 0, 1, 0}};
  EXPECT_EQ(PlaceBuffers(&buffers).status().code(), absl::StatusCode::kResourceExhausted);
  buffers = {{INT64_MAX, 0, 0, 0}};
  EXPECT_EQ(PlaceBuffers(&buffers).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PlannerTest, NothingTakesNothing) {
  std::vector<Buffer> buffers;
  EXPECT_EQ(PlaceBuffers(&buffers).value_or(-1), 0);
  buffers = {{0, 0, 3, 0}, {0, 1, 2, 0}};
  EXPECT_EQ(PlaceBuffers(&buffers).value_or(-1), 0);
}

}  // namespace
}  // namespace permafrost
