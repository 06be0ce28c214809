// Tests of calibration: ranges, means, and rejected values.
#include "runtime_check/precision/calibration.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/precision/value_range.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() : graph_({1, 1, 2, 2}) {
    graph_.Float("doubled", "AddV2", {"x", "x"});
    graph_.Float("relu", "Relu", {"doubled"});
    report_.partitions.emplace_back().nodes = {"doubled", "relu"};
  }
  absl::StatusOr<std::map<std::string, TensorStatistics>> Calibrated(std::vector<std::vector<float>> samples) {
    std::vector<std::vector<Tensor>> tensors;
    for (std::vector<float>& sample : samples) tensors.push_back({Floats({1, 1, 2, 2}, std::move(sample))});
    return Calibrate(graph_.graph(), {"x"}, tensors, report_, RangeMethod::kMinMax, {});
  }

  ImageGraph graph_;
  DelegationReport report_;
};

TEST_F(CalibrationTest, FindsRangesAndMeansOverAllSamples) {
  const auto found = Calibrated({{1, 2, 3, -4}, {5, 6, 7, 8}});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3);
  const TensorStatistics& fed = found->at("x");
  EXPECT_EQ(fed.least, -4);
  EXPECT_EQ(fed.most, 8);
  EXPECT_EQ(fed.bound, 8);
  EXPECT_THAT(fed.means, ElementsAre(4, 3));
  EXPECT_EQ(found->at("doubled").least, -8);
  EXPECT_EQ(found->at("relu").least, 0);
  EXPECT_THAT(found->at("relu").means, ElementsAre(8, 8));
}

TEST_F(CalibrationTest, RefusesWhatIsNotFinite) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const auto found = Calibrated({{1, 2, 3, 4}, {1, odd, 3, 4}});
    EXPECT_TRUE(absl::IsInvalidArgument(found.status()));
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("in the output of 'x', expected finite numbers"));
  }
  // An infinity that arises inside the model.
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(std::string(Calibrated({{1, 2, 3, most}}).status().message()), HasSubstr("'doubled'"));
}

TEST_F(CalibrationTest, NeedsSamples) {
  EXPECT_THAT(std::string(Calibrated({}).status().message()), HasSubstr("found none"));
}

TEST_F(CalibrationTest, TakesZerosAndConstants) {
  const auto zeros = Calibrated({{0, 0, 0, 0}});
  ASSERT_TRUE(zeros.ok()) << zeros.status();
  EXPECT_EQ(zeros->at("x").bound, 0);
  const auto same = Calibrated({{-3, -3, -3, -3}});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->at("x").bound, 3);
  EXPECT_EQ(same->at("x").most, -3);
}

// A bell-shaped distribution of many small values, with one outlier.
std::vector<float> WithOutlier() {
  std::vector<float> values;
  uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    float sum = 0;
    for (int k = 0; k < 6; ++k) {
      state = state * 1664525u + 1013904223u;
      sum += static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5f;
    }
    values.push_back(sum);
  }
  values.push_back(100);
  return values;
}

TEST(HistogramTest, MethodsCutOutliersAsTheySay) {
  const std::vector<float> values = WithOutlier();
  Histogram histogram(100);
  histogram.Add(values);
  EXPECT_EQ(histogram.Bound(RangeMethod::kMinMax, 127), 100);
  EXPECT_LT(histogram.Bound(RangeMethod::kPercentile999, 127), 4);
  EXPECT_LE(histogram.Bound(RangeMethod::kPercentile999, 127), histogram.Bound(RangeMethod::kPercentile9999, 127));
  EXPECT_LT(histogram.Bound(RangeMethod::kKl, 127), 100);
  const float bound = histogram.Bound(RangeMethod::kMse, 127);
  for (const RangeMethod other : {RangeMethod::kMinMax, RangeMethod::kPercentile999, RangeMethod::kKl}) {
    EXPECT_LE(histogram.SquaredError(bound, 127), histogram.SquaredError(histogram.Bound(other, 127), 127));
  }
}

TEST(HistogramTest, TakesWhatHardlyIs) {
  for (const float most : {0.0f, 1e-40f, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()}) {
    Histogram histogram(most);
    histogram.Add({most, -most, 0.0f});
    for (const std::string& name : RangeMethodNames()) {
      const float bound = histogram.Bound(*RangeMethodOf(name), 127);
      EXPECT_TRUE(std::isfinite(bound)) << name << " " << most;
      EXPECT_GE(bound, 0) << name << " " << most;
    }
  }
  EXPECT_EQ(Histogram(0).Bound(RangeMethod::kKl, 127), 0);
}

TEST(RangeMethodTest, SaysWhichThereAre) {
  EXPECT_EQ(*RangeMethodOf("kl"), RangeMethod::kKl);
  EXPECT_THAT(std::string(RangeMethodOf("minmxa").status().message()),
              testing::AllOf(HasSubstr("no calibration 'minmxa'"), HasSubstr("minmax")));
}

}  // namespace
}  // namespace permafrost
