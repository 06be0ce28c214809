// Tests of statistics, with numbers computed by hand.
#include "runtime_check/profiling/run_statistics.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

using testing::DoubleNear;

RunningStat Stat(const std::vector<int64_t>& values) {
  RunningStat stat;
  for (const int64_t value : values) stat.Add(value);
  return stat;
}

TEST(RunningStat, IsTheOriginals) {
  const RunningStat stat = Stat({1, -1, 100, 0});
  EXPECT_EQ(stat.count(), 4);
  EXPECT_EQ(stat.min(), -1);
  EXPECT_EQ(stat.max(), 100);
  EXPECT_EQ(stat.mean(), 25);
  EXPECT_EQ(stat.first(), 1);
  EXPECT_EQ(stat.newest(), 0);
  EXPECT_EQ(stat.squared_sum(), 10002);
  EXPECT_THAT(stat.standard_deviation(), DoubleNear(43.307, 1e-3));
  EXPECT_EQ(stat.ToString(), "count=4 first=1 curr=0 min=-1 max=100 avg=25 std=43");
}

TEST(RunningStat, HasThreeForms) {
  EXPECT_EQ(Stat({}).ToString(), "count=0");
  EXPECT_EQ(Stat({387785}).ToString(), "count=1 curr=387785");
  EXPECT_EQ(Stat({7, 7}).ToString(), "count=2 curr=7(all same)");
  EXPECT_EQ(Stat({25087, 17032}).ToString(), "count=2 first=25087 curr=17032 min=17032 max=25087 avg=21059.5 std=4027");
}

TEST(RunningStat, DoesNotOverflow) {
  const RunningStat stat = Stat({INT64_MAX, INT64_MAX, 0});
  EXPECT_GT(stat.sum(), 1.8e19);
  EXPECT_TRUE(std::isfinite(stat.standard_deviation()));
}

TEST(Sample, IsZeroWhenEmpty) {
  const Sample sample;
  EXPECT_EQ(sample.median(), 0);
  EXPECT_EQ(sample.mean_without_outliers(), 0);
  EXPECT_EQ(sample.relative_spread(), 0);
  EXPECT_EQ(sample.MedianInterval().high, 0);
  EXPECT_TRUE(Sample({NAN}).empty());
}

TEST(Sample, HasPercentilesBetweenValues) {
  const Sample sample({4, 1, 3, 2});
  EXPECT_EQ(sample.median(), 2.5);
  EXPECT_EQ(sample.Percentile(0), 1);
  EXPECT_EQ(sample.Percentile(1), 4);
  EXPECT_EQ(sample.Percentile(0.25), 1.75);
  EXPECT_EQ(sample.mean(), 2.5);
  EXPECT_THAT(sample.variance(), DoubleNear(5.0 / 3, 1e-12));
}

TEST(Sample, LeavesOutliersOutOfTheMean) {
  const Sample sample({10, 11, 9, 10, 10, 11, 9, 10, 500});
  EXPECT_EQ(sample.num_outliers(), 1u);
  EXPECT_EQ(sample.mean_without_outliers(), 10);
  EXPECT_GT(sample.mean(), 60);
  EXPECT_EQ(sample.median(), 10);
}

TEST(Sample, KnowsWhereTheMedianIs) {
  std::vector<double> values;
  for (int i = 1; i <= 20; ++i) values.push_back(i);
  // P(at most 5 of 20 coins) = 0.0207 <= 0.025 < P(at most 6) = 0.0577: from the 6th value to the 15th.
  const Interval interval = Sample(values).MedianInterval();
  EXPECT_EQ(interval.low, 6);
  EXPECT_EQ(interval.high, 15);
  EXPECT_EQ(Sample({1, 2, 3}).MedianInterval().low, 1);
  EXPECT_EQ(Sample({1, 2, 3}).MedianInterval().high, 3);
}

// The interval contains the true median in about 95 % of samples of a skewed distribution.
TEST(Sample, IntervalHoldsTheMedianAsOftenAsItSays) {
  std::mt19937 random(1);
  std::exponential_distribution<double> skewed(1);
  int held = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> values;
    for (int j = 0; j < 25; ++j) values.push_back(skewed(random));
    const Interval interval = Sample(values).MedianInterval();
    if (interval.low <= std::log(2.0) && std::log(2.0) <= interval.high) ++held;
  }
  EXPECT_GE(held, 2000 * 0.945);
  EXPECT_LE(held, 2000 * 0.98);
}

TEST(PairedRatiosTest, DropsWhatBothSuffer) {
  const Sample ratios = PairedRatios({2, 20, 2, 4}, {1, 10, 1, 2});
  EXPECT_EQ(ratios.median(), 2);
  EXPECT_EQ(ratios.relative_spread(), 0);
  EXPECT_EQ(PairedRatios({1}, {0}).size(), 0u);
}

}  // namespace
}  // namespace permafrost
