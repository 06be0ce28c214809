// Compares the onednn delegate in bf16x3, where floats are split into two bfloat16 numbers, with the reference kernels.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "tests/runtime_check/delegates/conformance.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Well below the error of bfloat16, which is about 3e-3, and above that of sums in another order.
constexpr double kClose = 3e-5;

class OneDnnBf16x3Test : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = MakeDelegate("onednn", {"bf16x3", nullptr}).status();
    if (absl::IsUnimplemented(status)) GTEST_SKIP() << status;
  }

  static PrecisionPlan Uniform(Precision precision) {
    PrecisionPlan plan;
    plan.precision = precision;
    return plan;
  }

  // Runs the current graph in bf16x3, with one thread and with two.
  void ExpectClose(const ImageGraph& graph, const Shape& image, const std::string& fetch) {
    const Tensor input = SomeFloats(image, 5);
    for (const int threads : {1, 2}) {
      const PlanOutcome outcome = RunPlan(graph.graph(), Uniform(Precision::kBf16x3), input, {fetch}, threads);
      EXPECT_THAT(outcome.pieces, Contains(HasSubstr("bf16x3:amx")));
      EXPECT_LT(outcome.relative, kClose);
    }
  }
};

TEST_F(OneDnnBf16x3Test, ComputesConvolutionsOfAllShapes) {
  struct Case {
    Shape image, filter;
    int64_t stride, dilation;
    std::string padding;
  };
  const Case cases[] = {
      {{1, 28, 28, 96}, {1, 1, 96, 64}, 1, 1, "SAME"},  {{2, 13, 11, 99}, {1, 1, 99, 40}, 1, 1, "SAME"},
      {{1, 7, 7, 512}, {1, 1, 512, 300}, 1, 1, "SAME"}, {{1, 29, 27, 100}, {1, 1, 100, 48}, 2, 1, "VALID"},
      {{1, 64, 64, 3}, {7, 7, 3, 24}, 2, 1, "SAME"},    {{1, 65, 63, 11}, {3, 3, 11, 25}, 1, 1, "EXPLICIT"},
      {{2, 17, 15, 32}, {3, 3, 32, 32}, 1, 1, "SAME"},  {{1, 17, 40, 16}, {3, 3, 16, 48}, 2, 1, "SAME"},
      {{1, 21, 23, 20}, {3, 3, 20, 24}, 1, 2, "SAME"},  {{1, 21, 23, 20}, {5, 5, 20, 27}, 1, 1, "VALID"},
      {{1, 300, 20, 32}, {3, 1, 32, 33}, 1, 1, "SAME"}, {{1, 9, 200, 32}, {1, 7, 32, 24}, 1, 1, "SAME"},
      {{1, 1, 3000, 33}, {1, 3, 33, 32}, 1, 1, "SAME"}, {{1, 260, 260, 16}, {3, 3, 16, 24}, 1, 1, "SAME"},
      {{1, 8, 8, 256}, {3, 3, 256, 256}, 1, 1, "SAME"}, {{1, 40, 1, 64}, {3, 3, 64, 64}, 1, 1, "SAME"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(absl::StrCat(each.image.ToString(), " ", each.filter.ToString(), " ", each.stride, " ", each.dilation,
                              " ", each.padding));
    ImageGraph graph(each.image);
    graph.Window("conv", "Conv2D", "x", each.filter, each.stride, each.dilation, each.padding);
    ExpectClose(graph, each.image, "conv");
  }
}

TEST_F(OneDnnBf16x3Test, FusesWhatFollows) {
  const Shape image = {1, 15, 17, 24};
  ImageGraph graph(image);
  graph.Convolution("a", "x", {3, 3, 24, 104});
  graph.Weights("bias", {104});
  graph.Float("a_bias", "BiasAdd", {"a", "bias"});
  graph.Float("a_relu", "Relu6", {"a_bias"});
  graph.Convolution("b", "a_relu", {3, 3, 104, 104});
  graph.Float("gate", "Sigmoid", {"b"});
  graph.Float("swish", "Mul", {"b", "gate"});
  graph.Convolution("c", "swish", {1, 1, 104, 104});
  graph.Float("sum", "AddV2", {"c", "a_relu"});
  graph.Float("sum_relu", "Relu", {"sum"});
  graph.Convolution("out", "sum_relu", {1, 1, 104, 40});
  const PlanOutcome outcome = RunPlan(graph.graph(), Uniform(Precision::kBf16x3), SomeFloats(image, 5), {"out"});
  EXPECT_LT(outcome.relative, kClose);
  EXPECT_THAT(outcome.pieces, testing::SizeIs(4));
  EXPECT_THAT(outcome.pieces, Each(HasSubstr("bf16x3:amx")));
  EXPECT_THAT(outcome.pieces, Contains(HasSubstr("swish")));
  EXPECT_THAT(outcome.pieces, Contains(HasSubstr("add + relu")));
}

TEST_F(OneDnnBf16x3Test, LeavesToFloatsWhatItHasNoUnitsFor) {
  const Shape image = {1, 32, 32, 32};
  ImageGraph graph(image);
  graph.Window("depthwise", "DepthwiseConv2dNative", "x", {3, 3, 32, 1}, 1, 1, "SAME");
  graph.Convolution("out", "depthwise", {3, 3, 32, 32});
  const PlanOutcome outcome = RunPlan(graph.graph(), Uniform(Precision::kBf16x3), SomeFloats(image, 5), {"out"});
  EXPECT_LT(outcome.relative, kClose);
  EXPECT_THAT(outcome.pieces, Contains(AllOf(HasSubstr("depthwise"), Not(HasSubstr("bf16")))));
}

TEST_F(OneDnnBf16x3Test, ReadsAndWritesWhatItsNeighboursHold) {
  const Shape image = {1, 24, 24, 32};
  ImageGraph graph(image);
  graph.Convolution("a", "x", {3, 3, 32, 32});
  graph.Convolution("b", "a", {3, 3, 32, 32});
  graph.Convolution("c", "b", {3, 3, 32, 32});
  const Tensor input = SomeFloats(image, 5);
  PrecisionPlan plan = Uniform(Precision::kBf16x3);
  plan.nodes["c"] = Precision::kBf16;
  const PlanOutcome mixed = RunPlan(graph.graph(), plan, input, {"c"});
  // The error is at most that of the one bfloat16 layer, and no piece converts the intermediate result.
  EXPECT_LT(mixed.relative, 0.01);
  EXPECT_GT(mixed.relative, kClose);
  EXPECT_THAT(mixed.pieces, testing::SizeIs(3));
}

// The second part of an infinity is NaN, so a run with an infinity computes in float.
TEST_F(OneDnnBf16x3Test, KeepsWhatIsNotFinite) {
  const Shape image = {1, 24, 24, 32};
  ImageGraph graph(image);
  graph.Convolution("conv", "x", {3, 3, 32, 32});
  std::vector<float> values = ToVector(SomeFloats(image, 5));
  values[0] = std::numeric_limits<float>::infinity();
  values[100] = std::numeric_limits<float>::quiet_NaN();
  const Tensor input = Floats(image, values);
  const PlanOutcome outcome = RunPlan(graph.graph(), Uniform(Precision::kBf16x3), input, {"conv"});
  const auto floats = RunPlan(graph.graph(), Uniform(Precision::kF32), input, {"conv"});
  const std::vector<float> found = ToVector(outcome.outputs[0]), expected = ToVector(floats.outputs[0]);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << i;
    if (!std::isnan(expected[i])) {
      EXPECT_EQ(found[i], expected[i]) << i;
    }
  }
}

}  // namespace
}  // namespace permafrost
