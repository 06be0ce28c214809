// Precision `auto` by measurement: what the budget allows, and what is said where it does not.
#include "runtime_check/precision_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegate_registry.h"
#include "tests/runtime_check/delegates/image_graph.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const Shape kImage = {1, 8, 8, 16};

class PrecisionChoiceTest : public testing::Test {
 protected:
  PrecisionChoiceTest() : graph_(kImage) {
    graph_.Convolution("a", "x", {3, 3, 16, 32});
    graph_.Float("b", "Relu", {"a"});
    graph_.Convolution("out", "b", {1, 1, 32, 16});
  }

  absl::StatusOr<PrecisionChoice> Choose(const AccuracyBudget& budget, const std::string& delegate = "onednn") {
    return ChoosePrecision(graph_.graph(), {"x"}, {"out"}, {{SomeFloats(kImage, 1)}, {SomeFloats(kImage, 2)}}, delegate,
                           {}, budget);
  }

  ImageGraph graph_;
};

TEST_F(PrecisionChoiceTest, TriesAllAndTakesTheFastestWithinTheBudget) {
  const auto choice = Choose({});
  ASSERT_TRUE(choice.ok()) << choice.status();
  ASSERT_THAT(choice->trials, SizeIs(2));
  const PrecisionTrial& full = choice->trials[0];
  const PrecisionTrial& half = choice->trials[1];
  EXPECT_EQ(full.precision, "f32");
  EXPECT_LT(full.worst_relative_rms, 1e-5);
  EXPECT_EQ(half.precision, "bf16");
  if (absl::IsUnimplemented(MakeDelegate("onednn", {"bf16"}).status())) {
    EXPECT_FALSE(half.is_within_budget);
    EXPECT_THAT(half.reason, HasSubstr("AVX-512"));
    GTEST_SKIP() << half.reason;
  }
  EXPECT_GT(half.worst_relative_rms, 1e-4);
  EXPECT_LT(half.worst_relative_rms, 0.03);
  EXPECT_TRUE(full.is_within_budget && half.is_within_budget);
  EXPECT_EQ(choice->precision, half.milliseconds < full.milliseconds ? "bf16" : "f32");
}

TEST_F(PrecisionChoiceTest, KeepsToTheBudget) {
  const auto choice = Choose({1e-4, 1e-12});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->precision, "f32");
  EXPECT_FALSE(choice->trials[1].is_within_budget);
  if (!absl::IsUnimplemented(MakeDelegate("onednn", {"bf16"}).status())) {
    EXPECT_THAT(choice->trials[1].reason, HasSubstr("output 'out': found rms error"));
  }
}

TEST_F(PrecisionChoiceTest, FallsBackToTheFirstWhenNothingFits) {
  const auto choice = Choose({-1, -1});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->precision, "f32");
}

TEST_F(PrecisionChoiceTest, NeedsSamplesAndAKnownDelegate) {
  EXPECT_THAT(std::string(ChoosePrecision(graph_.graph(), {"x"}, {"out"}, {}, "onednn", {}).status().message()),
              HasSubstr("sample inputs: found none"));
  EXPECT_THAT(std::string(Choose({}, "onednm").status().message()), HasSubstr("onednn"));
}

}  // namespace
}  // namespace permafrost
