// Tests of the measures of difference, on values small enough to check by hand.
#include "runtime_check/checking/compare.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(CompareTest, MeasuresOfFloats) {
  const OutputDifference difference = CompareTensors(Floats({2, 2}, {1, -2, 0, 4}), Floats({2, 2}, {1, -1, 0, 4.5}));
  EXPECT_EQ(difference.num_elements, 4);
  EXPECT_EQ(difference.num_different, 2);
  EXPECT_DOUBLE_EQ(difference.max_abs, 1);
  EXPECT_DOUBLE_EQ(difference.mean_abs, 1.5 / 4);
  EXPECT_DOUBLE_EQ(difference.max_rel, 0.5);
  EXPECT_DOUBLE_EQ(difference.max_abs_expected, 4);
  EXPECT_NEAR(difference.sqnr_db, 10 * std::log10(21 / 1.25), 1e-9);
  EXPECT_NEAR(difference.cosine, (1 + 2 + 18) / std::sqrt(21 * (1 + 1 + 20.25)), 1e-9);
  EXPECT_TRUE(difference.IsWithin(0.25));
  EXPECT_FALSE(difference.IsWithin(0.24));
  EXPECT_FALSE(difference.is_identical());
}

TEST(CompareTest, Identical) {
  const OutputDifference difference = CompareTensors(Floats({3}, {kNan, kInf, 0}), Floats({3}, {kNan, kInf, -0.f}));
  EXPECT_TRUE(difference.is_identical());
  EXPECT_TRUE(difference.IsWithin(0));
  EXPECT_EQ(difference.sqnr_db, kInf);
  EXPECT_EQ(difference.cosine, 1);
}

TEST(CompareTest, NonFiniteMismatchesAreNeverWithin) {
  for (const auto& [expected, actual] : {std::pair(kNan, 1.f), std::pair(1.f, kNan), std::pair(kInf, -kInf),
                                         std::pair(1.f, kInf), std::pair(kNan, kInf)}) {
    const OutputDifference difference = CompareTensors(Floats({2}, {0, expected}), Floats({2}, {0, actual}));
    EXPECT_EQ(difference.num_nonfinite_mismatches, 1) << expected << " " << actual;
    EXPECT_FALSE(difference.IsWithin(1e30));
  }
}

TEST(CompareTest, TypeAndShapeMismatches) {
  const OutputDifference shapes = CompareTensors(Floats({2, 1}, {1, 2}), Floats({1, 2}, {1, 2}));
  EXPECT_EQ(shapes.kind, OutputDifference::Kind::kShapeMismatch);
  EXPECT_EQ(shapes.mismatch, "found float [1,2], expected float [2,1]");
  EXPECT_FALSE(shapes.IsWithin(1e30));
  EXPECT_FALSE(shapes.is_identical());
  const OutputDifference types = CompareTensors(Floats({1}, {1}), Tensor::FromVector<int32_t>({1}, {1}));
  EXPECT_EQ(types.kind, OutputDifference::Kind::kDTypeMismatch);
}

TEST(CompareTest, TopAgreement) {
  // First row: same class. Second row: another class; the expected one is second. Third row: the expected class is
  // last.
  const Tensor expected = Floats({3, 6}, {0, 1, 0, 0, 0, 0, 9, 1, 2, 3, 4, 5, 9, 0, 0, 0, 0, 0});
  const Tensor actual = Floats({3, 6}, {0, 5, 0, 0, 0, 0, 8, 9, 2, 3, 4, 5, -1, 0, 0, 0, 0, 0});
  const OutputDifference difference = CompareTensors(expected, actual);
  EXPECT_DOUBLE_EQ(difference.top1_agreement.value_or(-1), 1.0 / 3);
  EXPECT_DOUBLE_EQ(difference.top5_agreement.value_or(-1), 2.0 / 3);
  EXPECT_FALSE(CompareTensors(Floats({1, 5}, {1, 2, 3, 4, 5}), Floats({1, 5}, {1, 2, 3, 4, 5})).top5_agreement);
  EXPECT_FALSE(CompareTensors(Floats({}, {1}), Floats({}, {1})).top1_agreement);
  EXPECT_FALSE(CompareTensors(Floats({0, 3}, {}), Floats({0, 3}, {})).top1_agreement);
}

TEST(CompareTest, IntegersAreExact) {
  const int64_t large = (int64_t{1} << 53) + 1;  // Rounds to 2^53 as a double.
  const OutputDifference difference =
      CompareTensors(Tensor::FromVector<int64_t>({1}, {large}), Tensor::FromVector<int64_t>({1}, {large - 1}));
  EXPECT_EQ(difference.num_different, 1);
  const auto bytes = [](uint8_t x) { return Tensor::FromVector<uint8_t>({2}, {x, 250}); };
  EXPECT_EQ(CompareTensors(bytes(3), bytes(5)).max_abs, 2);
}

TEST(CompareTest, OtherTypes) {
  const auto half = [](float x) { return Tensor::FromVector<Half>({1}, {ToHalf(x)}); };
  EXPECT_EQ(CompareTensors(half(1), half(1.5)).max_abs, 0.5);
  const auto code = [](int8_t x) { return Tensor::FromVector<QInt8>({1}, {QInt8{x}}); };
  EXPECT_EQ(CompareTensors(code(-3), code(4)).max_abs, 7);
  const auto complex = [](float re, float im) {
    return Tensor::FromVector<std::complex<float>>({1}, {std::complex<float>(re, im)});
  };
  EXPECT_EQ(CompareTensors(complex(1, 2), complex(1, 5)).max_abs, 3);
  EXPECT_EQ(CompareTensors(Tensor::Scalar<bool>(true), Tensor::Scalar<bool>(false)).num_different, 1);
}

TEST(CompareTest, Strings) {
  const Tensor a = Tensor::FromStrings({2}, {"a", "b"});
  EXPECT_TRUE(CompareTensors(a, a).IsWithin(0));
  const OutputDifference difference = CompareTensors(a, Tensor::FromStrings({2}, {"a", "c"}));
  EXPECT_EQ(difference.num_different, 1);
  EXPECT_FALSE(difference.IsWithin(1e30));
}

TEST(CompareTest, SmallOutputsAreJudgedByTheirOwnScale) {
  const OutputDifference small = CompareTensors(Floats({2}, {1e-4f, 0}), Floats({2}, {1e-4f, 5e-5f}));
  EXPECT_NEAR(small.relative(), 0.5, 1e-6);
  // Below the floor, the scale is the floor.
  const OutputDifference tiny = CompareTensors(Floats({1}, {1e-9f}), Floats({1}, {-1e-9f}));
  EXPECT_NEAR(tiny.relative(), 2e-9 / kScaleFloor, 1e-6);
  EXPECT_FALSE(CompareTensors(Floats({1}, {0}), Floats({1}, {1e-3f})).IsWithin(1));
}

TEST(CompareTest, ErrorsSpreadOverAPeakedOutputCount) {
  std::vector<float> peaked(100, 0.f), spread(100, 0.01f);
  peaked[0] = spread[0] = 1;
  const OutputDifference difference = CompareTensors(Floats({100}, peaked), Floats({100}, spread));
  EXPECT_NEAR(difference.relative(), 0.01 * std::sqrt(99.0), 1e-6);
}

TEST(CompareTest, MergedDifferencesAreOverAllInputs) {
  OutputDifference merged = CompareTensors(Floats({1}, {1e-4f}), Floats({1}, {2e-4f}));
  merged.Merge(CompareTensors(Floats({1}, {1}), Floats({1}, {1})));
  EXPECT_NEAR(merged.relative(), 1e-4, 1e-9);
}

}  // namespace
}  // namespace permafrost
