// Tests of the judgement of outputs at its thresholds.
#include "runtime_check/checking/output_quality.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

// A sine, and the same sine plus a cosine whose amplitude determines the SQNR.
OutputDifference WithNoise(double sqnr_db) {
  constexpr int kCount = 1000;
  const double amplitude = std::pow(10, -sqnr_db / 20);
  std::vector<float> expected, actual;
  for (int i = 0; i < kCount; ++i) {
    const double angle = 2 * 3.14159265358979 * i / kCount;
    expected.push_back(static_cast<float>(std::sin(angle)));
    actual.push_back(static_cast<float>(std::sin(angle) + amplitude * std::cos(angle)));
  }
  return CompareTensors(Floats({kCount}, expected), Floats({kCount}, actual));
}

TEST(OutputQualityTest, BySqnr) {
  EXPECT_EQ(JudgeQuality(WithNoise(31)), OutputQuality::kFine);
  EXPECT_EQ(JudgeQuality(WithNoise(29)), OutputQuality::kVisible);
  EXPECT_EQ(JudgeQuality(WithNoise(13)), OutputQuality::kRuined);
}

TEST(OutputQualityTest, AnotherScaleIsVisibleButNotRuined) {
  const OutputDifference scaled = CompareTensors(Floats({1, 3}, {1, 2, 3}), Floats({1, 3}, {0.5f, 1, 1.5f}));
  EXPECT_LT(scaled.sqnr_db, 15);
  EXPECT_EQ(JudgeQuality(scaled), OutputQuality::kVisible);
}

TEST(OutputQualityTest, ClassesThatChange) {
  std::vector<float> expected, actual;
  for (int i = 0; i < 200; ++i) {
    const bool changes = i % 2 == 0;
    expected.insert(expected.end(), {10, 10.1f});
    actual.insert(actual.end(), {10, changes ? 9.9f : 10.1f});
  }
  const OutputDifference difference = CompareTensors(Floats({200, 2}, expected), Floats({200, 2}, actual));
  EXPECT_GT(difference.sqnr_db, 30);
  EXPECT_EQ(JudgeQuality(difference), OutputQuality::kRuined);
  // In a few rows, a changed class is not significant.
  const OutputDifference few = CompareTensors(Floats({1, 2}, {10, 10.1f}), Floats({1, 2}, {10, 9.9f}));
  EXPECT_EQ(JudgeQuality(few), OutputQuality::kFine);
}

TEST(OutputQualityTest, ExactValuesByTheShareOfEqualOnes) {
  std::vector<int32_t> expected(1000), actual(1000);
  actual[0] = 1000;
  const auto ids = [](const std::vector<int32_t>& values) { return Tensor::FromVector<int32_t>({1000}, values); };
  EXPECT_EQ(JudgeQuality(CompareTensors(ids(expected), ids(actual))), OutputQuality::kFine);
  for (size_t i = 0; i < 400; ++i) actual[i] = 1000;
  EXPECT_EQ(JudgeQuality(CompareTensors(ids(expected), ids(actual))), OutputQuality::kRuined);
}

TEST(OutputQualityTest, NoiseAboutZeroIsFine) {
  EXPECT_EQ(JudgeQuality(CompareTensors(Floats({2}, {0, 0}), Floats({2}, {1e-8f, 0}))), OutputQuality::kFine);
}

TEST(OutputQualityTest, WhatCannotBeComparedIsRuined) {
  EXPECT_EQ(JudgeQuality(CompareTensors(Floats({1}, {1}), Floats({2}, {1, 1}))), OutputQuality::kRuined);
  EXPECT_EQ(JudgeQuality(CompareTensors(Floats({1}, {1}), Floats({1}, {NAN}))), OutputQuality::kRuined);
}

}  // namespace
}  // namespace permafrost
