// Tests of accuracy, its confidence intervals, and models with non-finite outputs.
#include "tools/validation/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "io/formats/json_value.h"
#include "tests/tools/graph_from_text.h"
#include "tools/validation/significance.h"
#include "tools/validation/validation_report.h"

namespace permafrost {
namespace {

using testing::HasSubstr;
using Kind = OutputScore::Kind;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(SignificanceTest, WilsonsInterval) {
  // 8 of 10: the example of Agresti and Coull (1998) to four digits.
  const Interval interval = ShareInterval(8, 10);
  EXPECT_NEAR(interval.low, 0.4902, 1e-4);
  EXPECT_NEAR(interval.high, 0.9433, 1e-4);
  EXPECT_EQ(ShareInterval(0, 10).low, 0);
  EXPECT_NEAR(ShareInterval(0, 10).high, 0.2775, 1e-4);
  EXPECT_EQ(ShareInterval(10, 10).high, 1);
  EXPECT_EQ(ShareInterval(0, 0).high, 1);
}

TEST(SignificanceTest, McNemarIsExactForFew) {
  // 2 x (C(9,0) + C(9,1)) / 2^9.
  EXPECT_DOUBLE_EQ(McNemarProbability({100, 1, 8}), 20.0 / 512);
  EXPECT_DOUBLE_EQ(McNemarProbability({100, 8, 1}), 20.0 / 512);
  EXPECT_EQ(McNemarProbability({100, 0, 0}), 1);
  EXPECT_EQ(McNemarProbability({100, 4, 4}), 1);
  EXPECT_DOUBLE_EQ(McNemarProbability({100, 1, 0}), 1);
}

TEST(SignificanceTest, McNemarForManyGoesOnWhereItWasExact) {
  // Chi-squared of 3.841 with one degree of freedom is 0.05: (|b - c| - 1)^2 / (b + c).
  EXPECT_NEAR(McNemarProbability({10000, 1098, 1002}), 0.0381, 2e-4);
  // The two formulas agree at the limit between them.
  const double exact = McNemarProbability({10000, 460, 540}), limit = McNemarProbability({10000, 460, 541});
  EXPECT_NEAR(exact, limit, 0.002);
  EXPECT_EQ(McNemarProbability({10000, 1000, 1000}), 1);
}

TEST(SignificanceTest, IntervalOfTheDifference) {
  // Computed by hand: N = 102, b = 8.5, c = 1.5.
  const Interval interval = ShareDifferenceInterval({100, 8, 1});
  const double middle = -7.0 / 102, half = 1.959964 * std::sqrt(10 - 49.0 / 102) / 102;
  EXPECT_NEAR(interval.low, middle - half, 1e-6);
  EXPECT_NEAR(interval.high, middle + half, 1e-6);
  EXPECT_EQ(ShareDifferenceInterval({}).low, -1);
}

Labels Classes(std::vector<int64_t> classes) {
  Labels labels;
  labels.classes = std::move(classes);
  return labels;
}

OutputScore ScoreOf(const Tensor& reference, const Tensor& candidate, const Labels& labels) {
  OutputScore score;
  score.kind = KindOfAnswers(reference, labels.num_rows(), labels);
  EXPECT_NE(score.kind, Kind::kNone);
  AddAnswers(reference, candidate, 0, labels.num_rows(), labels, &score);
  return score;
}

TEST(ScoringTest, CountsRightAnswers) {
  const Tensor reference = Tensor::FromVector<float>({3, 3}, {1, 2, 3, 3, 2, 1, 5, 5, 1});
  const Tensor candidate = Tensor::FromVector<float>({3, 3}, {1, 2, 3, 1, 2, 1, 5, 6, 1});
  const OutputScore score = ScoreOf(reference, candidate, Classes({2, 0, 1}));
  EXPECT_EQ(score.rows, 3);
  EXPECT_EQ(score.classes, 3);
  EXPECT_FALSE(score.has_five());
  EXPECT_EQ(score.reference.right, 2);  // The first of equal elements is the answer.
  EXPECT_EQ(score.candidate.right, 2);
  EXPECT_EQ(score.paired.only_first, 1);
  EXPECT_EQ(score.paired.only_second, 1);
  EXPECT_EQ(score.reference.answers.at({1, 0}), 1);
  EXPECT_EQ(score.candidate.answers.at({0, 1}), 1);
}

TEST(ScoringTest, TopFiveBreaksTiesByPlace) {
  const Tensor answers = Tensor::FromVector<float>({2, 7}, {1, 1, 1, 1, 1, 1, 1, 9, 8, 7, 6, 5, 4, 3});
  EXPECT_EQ(ScoreOf(answers, answers, Classes({4, 4})).reference.right_in_five, 2);
  EXPECT_EQ(ScoreOf(answers, answers, Classes({5, 5})).reference.right_in_five, 0);
  EXPECT_EQ(ScoreOf(answers, answers, Classes({5, 0})).reference.right, 1);
}

TEST(ScoringTest, NanIsNoAnswer) {
  const Tensor reference = Tensor::FromVector<float>({2, 2}, {kNan, 1, 0, kInfinity});
  const OutputScore score = ScoreOf(reference, reference, Classes({1, 1}));
  EXPECT_EQ(score.reference.right, 1);
  EXPECT_EQ(score.reference.rows_with_nan, 1);
  EXPECT_EQ(score.reference.answers.at({1, -1}), 1);
}

TEST(ScoringTest, Numbers) {
  Labels labels;
  labels.numbers = {1, 2, 3, 4};
  labels.numbers_per_row = 2;
  const Tensor reference = Tensor::FromVector<float>({2, 2, 1}, {1, 2, 3, 8});
  const Tensor candidate = Tensor::FromVector<float>({2, 2, 1}, {1, 0, 3, kNan});
  const OutputScore score = ScoreOf(reference, candidate, labels);
  EXPECT_EQ(score.kind, Kind::kNumbers);
  EXPECT_DOUBLE_EQ(MeanError(score.reference), 1);
  EXPECT_DOUBLE_EQ(RootMeanSquareError(score.reference), 2);
  EXPECT_DOUBLE_EQ(MeanError(score.candidate), 2.0 / 3);
  EXPECT_EQ(score.candidate.num_not_finite, 1);
  EXPECT_EQ(score.candidate.rows_with_nan, 1);
}

TEST(ScoringTest, KindsOfAnswers) {
  const auto kind = [](const Shape& shape, int64_t rows, const Labels& labels) {
    const auto size = static_cast<size_t>(shape.num_elements());
    return KindOfAnswers(Tensor::FromVector<float>(shape, std::vector<float>(size)), rows, labels);
  };
  EXPECT_EQ(kind({2, 3}, 2, Classes({0, 2})), Kind::kClasses);
  EXPECT_EQ(kind({2, 1, 1, 3}, 2, Classes({0, 2})), Kind::kClasses);
  EXPECT_EQ(kind({2, 3}, 2, Classes({0, 3})), Kind::kNone);
  EXPECT_EQ(kind({2, 2, 2}, 2, Classes({0, 1})), Kind::kNone);
  EXPECT_EQ(kind({3, 2}, 2, Classes({0, 1})), Kind::kNone);
  EXPECT_EQ(kind({2, 1}, 2, Classes({30, 41})), Kind::kNumbers);  // Ages.
  EXPECT_EQ(KindOfAnswers(Tensor::FromStrings({1}, {"a"}), 1, Classes({0})), Kind::kNone);
}

// Returns a model that takes rows of two numbers and computes `line` from them, in 'y'.
std::unique_ptr<Graph> Model(const std::string& line) {
  std::unique_ptr<Graph> graph = GraphFromText(absl::StrCat("x = Placeholder()\n", line));
  graph->Find("x")->SetAttr("shape", AttrValue::OfShape({kUnknownDim, 2}));
  EXPECT_TRUE(graph->DeclareInterface({"x"}, {"y"}).ok());
  return graph;
}

std::unique_ptr<BatchSource> Rows(const std::vector<std::vector<float>>& batches) {
  std::vector<InputSet> sets;
  for (const std::vector<float>& batch : batches) {
    sets.push_back({Tensor::FromVector<float>({static_cast<int64_t>(batch.size()) / 2, 2}, batch)});
  }
  return KeptBatches(std::move(sets), std::nullopt);
}

std::string Text(const Validation& validation) {
  std::ostringstream out, err;
  PrintValidation(validation, {}, {out, err});
  return out.str();
}

TEST(ValidateTest, BatchesAddUp) {
  const auto reference = Model("y = Identity(x)"), candidate = Model("y = Neg(x)");
  const Labels labels = Classes({0, 1, 0});
  const auto source = Rows({{2, 1, 0, 3}, {5, 4}});
  const absl::StatusOr<Validation> result = Validate(*reference, *candidate, *source, &labels, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->num_runs, 2);
  const OutputValidation& output = result->outputs[0];
  EXPECT_EQ(output.difference.num_elements, 6);
  EXPECT_EQ(output.difference.max_abs, 10);
  EXPECT_DOUBLE_EQ(output.difference.mean_abs, 30.0 / 6);
  EXPECT_DOUBLE_EQ(output.difference.cosine, -1);
  EXPECT_EQ(output.score.reference.right, 3);
  EXPECT_EQ(output.score.candidate.right, 0);
  EXPECT_EQ(output.score.paired.only_first, 3);
}

TEST(ValidateTest, NanIsReported) {
  const auto reference = Model("y = Identity(x)"), candidate = Model("y = Log(x)");
  const Labels labels = Classes({0, 1});
  const auto source = Rows({{-1, 1}, {0, 1}});
  const absl::StatusOr<Validation> result = Validate(*reference, *candidate, *source, &labels, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const OutputValidation& output = result->outputs[0];
  EXPECT_FALSE(output.reference_nonfinite.any());
  EXPECT_EQ(output.candidate_nonfinite.nans, 1);
  EXPECT_EQ(output.candidate_nonfinite.infinities, 1);
  EXPECT_EQ(output.candidate_nonfinite.runs, 2);
  EXPECT_EQ(output.difference.num_nonfinite_mismatches, 2);
  EXPECT_THAT(Text(*result),
              HasSubstr("output 'y' of the candidate holds 1 NaN and 1 infinite of 4 elements, in 2 of 2 runs"));
  EXPECT_EQ(output.score.candidate.rows_with_nan, 1);
}

TEST(ValidateTest, BothNanIsReportedToo) {
  const auto model = Model("y = Log(x)");
  const auto source = Rows({{-1, 1}});
  const absl::StatusOr<Validation> result = Validate(*model, *model, *source, nullptr, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->outputs[0].difference.is_identical());
  EXPECT_THAT(Text(*result), HasSubstr("of the reference holds 1 NaN"));
}

TEST(ValidateTest, AnInterruptionKeepsWhatWasMeasured) {
  const auto model = Model("y = Identity(x)");
  const auto source = Rows({{2, 1}, {3, 4}, {5, 6}});
  ValidationSettings settings;
  int64_t done = 0;
  settings.progress = [&](int64_t rows) { done = rows; };
  settings.is_interrupted = [&] { return done == 2; };
  const absl::StatusOr<Validation> result = Validate(*model, *model, *source, nullptr, settings);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->was_interrupted);
  EXPECT_EQ(result->num_runs, 2);
  EXPECT_EQ(result->outputs[0].difference.num_elements, 4);
  EXPECT_THAT(Text(*result), HasSubstr("interrupted after 2 of 3 runs"));
}

TEST(ValidateTest, LabelsThatFitNoOutput) {
  const auto model = Model("y = Identity(x)");
  const Labels labels = Classes({0, 7});
  const absl::Status status = Validate(*model, *model, *Rows({{1, 2, 3, 4}}), &labels, {}).status();
  EXPECT_EQ(status.message(), "the labels are classes from 0 to 7, and no output has room for them: 'y' [2,2]");
}

TEST(ValidateTest, DistortsWhatIsFed) {
  auto model = GraphFromText("x = Placeholder()\ny = Identity(x)");
  model->Find("x")->SetAttr("shape", AttrValue::OfShape({kUnknownDim, 1, 2, 1}));
  ASSERT_TRUE(model->DeclareInterface({"x"}, {"y"}).ok());
  const auto converter = PictureConverter::Create({}, {DType::kFloat, 1, 2, 1, PictureLayout::kChannelsLast});
  const auto source = KeptBatches({{Tensor::FromVector<float>({1, 1, 2, 1}, {0.25F, 1})}}, *converter);
  Labels labels;
  labels.numbers = {0.25, 1};
  labels.numbers_per_row = 2;
  ValidationSettings settings;
  settings.distortions = ParseDistortions("dark=2.2").value();  // Half the value.
  const absl::StatusOr<Validation> result = Validate(*model, *model, *source, &labels, settings);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(MeanError(result->outputs[0].score.reference), 0);
  EXPECT_NEAR(MeanError(result->distorted[0].scores[0].candidate), (0.125 + 0.5) / 2, 2.0 / 255);
  EXPECT_THAT(Text(*result), HasSubstr("dark=2.2"));
}

TEST(ValidateTest, JsonHoldsEverything) {
  const auto reference = Model("y = Identity(x)"), candidate = Model("y = Neg(x)");
  const Labels labels = Classes({0, 1});
  const absl::StatusOr<Validation> result = Validate(*reference, *candidate, *Rows({{2, 1, 0, 3}}), &labels, {});
  ASSERT_TRUE(result.ok());
  std::ostringstream text;
  JsonWriter json(text);
  json.BeginObject();
  WriteValidation(*result, &json);
  json.End();
  ASSERT_TRUE(ParseJson(text.str()).ok());
  EXPECT_THAT(text.str(), HasSubstr("\"only_reference_right\": 2"));
  EXPECT_THAT(text.str(), HasSubstr("\"mcnemar_p\": 0.5"));
}

}  // namespace
}  // namespace permafrost
