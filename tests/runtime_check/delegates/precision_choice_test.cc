// Tests of precision `auto`: choices within the accuracy budget, and the reported reasons.
#include "runtime_check/precision/precision_choice.h"

#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime_check/delegates/delegate_registry.h"
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

  absl::StatusOr<PrecisionChoice> Choose(const AccuracyBudget& budget, const std::string& delegate = "onednn",
                                         std::vector<std::string> precisions = {"f32", "bf16"}) {
    ChoiceOptions options;
    options.budget = budget;
    options.precisions = std::move(precisions);
    return ChoosePrecision(graph_.graph(), {"x"}, {"out"}, {{SomeFloats(kImage, 1)}, {SomeFloats(kImage, 2)}}, delegate,
                           {}, options);
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
  if (absl::IsUnimplemented(MakeDelegate("onednn", {"bf16", nullptr}).status())) {
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
  if (!absl::IsUnimplemented(MakeDelegate("onednn", {"bf16", nullptr}).status())) {
    EXPECT_THAT(choice->trials[1].reason, HasSubstr("output 'out': found rms error"));
  }
}

TEST_F(PrecisionChoiceTest, FallsBackToTheFirstWhenNothingFits) {
  const auto choice = Choose({-1, -1});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->precision, "f32");
}

TEST_F(PrecisionChoiceTest, PlansWhatWantsAPlan) {
  const auto choice = Choose({}, "onednn", {});
  ASSERT_TRUE(choice.ok()) << choice.status();
  ASSERT_THAT(choice->trials, SizeIs(5));
  for (size_t i = 3; i < 5; ++i) {
    const PrecisionTrial& trial = choice->trials[i];
    EXPECT_EQ(trial.precision, i == 3 ? "int8" : "mixed");
    if (trial.milliseconds == 0) {
      EXPECT_FALSE(trial.is_within_budget);
      EXPECT_NE(trial.reason, "");
      continue;
    }
    ASSERT_NE(trial.plan, nullptr);
    EXPECT_FALSE(trial.notes.empty());
    EXPECT_THAT(trial.plan->tensors, testing::Contains(testing::Key("b")));
    // The precision plan is sufficient to reproduce the configuration.
    const auto delegate = MakeDelegate("onednn", {trial.precision, trial.plan});
    ASSERT_TRUE(delegate.ok()) << delegate.status();
    EXPECT_TRUE(trial.is_within_budget || trial.precision != "mixed") << trial.reason;
  }
}

TEST_F(PrecisionChoiceTest, MixedKeepsToTheBudget) {
  // Bfloat16 for all nodes exceeds this budget.
  const AccuracyBudget budget{1e-3, 1e-12};
  const auto choice = Choose(budget, "onednn", {"bf16", "mixed"});
  ASSERT_TRUE(choice.ok()) << choice.status();
  const PrecisionTrial& mixed = choice->trials[1];
  EXPECT_EQ(mixed.is_within_budget, mixed.plan != nullptr);
  EXPECT_TRUE(!mixed.is_within_budget || mixed.worst_relative_rms <= budget.relative_rms);
}

TEST_F(PrecisionChoiceTest, SaysWhichPrecisionsThereAre) {
  EXPECT_THAT(std::string(Choose({}, "onednn", {"int4"}).status().message()),
              HasSubstr("found precision 'int4', expected f32, bf16x3, bf16, int8, mixed"));
  EXPECT_THAT(std::string(MakeDelegate("onednn", {"int8", nullptr}).status().message()),
              HasSubstr("needs a precision plan"));
}

TEST_F(PrecisionChoiceTest, RefusesToCalibrateOnWhatIsNotFinite) {
  std::vector<float> values(static_cast<size_t>(kImage.num_elements()), 1.0f);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  ChoiceOptions options;
  options.precisions = {"f32", "int8"};
  const auto choice =
      ChoosePrecision(graph_.graph(), {"x"}, {"out"}, {{Floats(kImage, values)}}, "onednn", {}, options);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->precision, "f32");
  EXPECT_EQ(choice->trials[1].milliseconds, 0);
  EXPECT_NE(choice->trials[1].reason, "");
}

// A form of Winograd has other errors than the direct one.
TEST(PrecisionChoiceSwitchesTest, AppliesTheSwitchesOfTheDelegate) {
  const Shape image = {1, 28, 28, 64};
  ImageGraph graph(image);
  graph.Convolution("out", "x", {3, 3, 64, 64});
  const std::vector<std::vector<Tensor>> samples = {{SomeFloats(image, 1)}};
  const auto error = [&](bool no_winograd) {
    ChoiceOptions options;
    options.precisions = {"f32"};
    options.delegate.no_winograd = no_winograd;
    const auto choice = ChoosePrecision(graph.graph(), {"x"}, {"out"}, samples, "onednn", {}, options);
    EXPECT_TRUE(choice.ok()) << choice.status();
    return choice.ok() ? choice->trials[0].worst_relative_rms : 0;
  };
  SessionOptions options;
  options.delegate = *MakeDelegate("onednn", {});
  const auto session = Session::Create(graph.graph(), {"x"}, {"out"}, options);
  ASSERT_TRUE(session.ok() && (*session)->Run(samples[0]).ok());
  const auto partitions = (*session)->report().delegation.partitions;
  ASSERT_THAT(partitions, SizeIs(1));
  if (partitions[0].pieces[0].find("(winograd") == std::string::npos) GTEST_SKIP() << partitions[0].pieces[0];
  EXPECT_LT(error(true), error(false));
}

TEST_F(PrecisionChoiceTest, NeedsSamplesAndAKnownDelegate) {
  EXPECT_THAT(std::string(ChoosePrecision(graph_.graph(), {"x"}, {"out"}, {}, "onednn", {}).status().message()),
              HasSubstr("sample inputs: found none"));
  EXPECT_THAT(std::string(Choose({}, "onednm").status().message()), HasSubstr("onednn"));
}

}  // namespace
}  // namespace permafrost
