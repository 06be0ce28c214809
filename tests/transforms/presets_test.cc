// Tests presets: each is a valid transform string that runs, and expansion rejects invalid calls.
#include "transforms/pipeline/presets.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

std::vector<PassCall> Parse(absl::string_view text) {
  absl::StatusOr<std::vector<PassCall>> calls = ParsePipeline(text);
  EXPECT_TRUE(calls.ok()) << calls.status();
  return calls.ok() ? *std::move(calls) : std::vector<PassCall>();
}

class EachPreset : public testing::TestWithParam<Preset> {};

TEST_P(EachPreset, NamesPassesAndParametersThatExist) {
  const absl::StatusOr<std::vector<PassCall>> calls = ExpandPresets(Parse(GetParam().name));
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_GT(calls->size(), 1u);
  const absl::Status status = CheckPipeline(*calls);
  EXPECT_TRUE(status.ok()) << status;
  // The text shown by --describe_pass is equivalent.
  const std::vector<PassCall> shown = Parse(TransformsOf(GetParam()));
  ASSERT_EQ(shown.size(), calls->size());
  for (size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(shown[i].ToString(), (*calls)[i].ToString());
}

TEST_P(EachPreset, IsDocumentedAndNoPass) {
  EXPECT_TRUE(absl::EndsWith(GetParam().summary, ".")) << GetParam().summary;
  EXPECT_TRUE(absl::EndsWith(GetParam().description, ".")) << GetParam().description;
  EXPECT_FALSE(FindPass(GetParam().name).ok());
  EXPECT_EQ(FindPreset(GetParam().name)->name, GetParam().name);
}

TEST_P(EachPreset, TakesIgnoreErrorsAlone) {
  const absl::StatusOr<std::vector<PassCall>> calls =
      ExpandPresets(Parse(absl::StrCat(GetParam().name, "(ignore_errors=true)")));
  ASSERT_TRUE(calls.ok()) << calls.status();
  for (const PassCall& call : *calls) EXPECT_TRUE(call.ignore_errors) << call.name;
  const absl::Status status = ExpandPresets(Parse(absl::StrCat(GetParam().name, "(bits=8)"))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "accepts only 'ignore_errors', found 'bits'")) << status;
}

INSTANTIATE_TEST_SUITE_P(All, EachPreset, testing::ValuesIn(AllPresets().begin(), AllPresets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Presets, ExpandInPlace) {
  const auto calls = ExpandPresets(Parse("round_weights(num_steps=3) quantize obfuscate_names"));
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_EQ(calls->front().ToString(), "round_weights(num_steps=\"3\")");
  EXPECT_EQ((*calls)[1].name, "remove_control_dependencies");
  EXPECT_EQ((*calls)[calls->size() - 2].name, "quantize_weights");
  EXPECT_EQ(calls->back().name, "obfuscate_names");
}

TEST(Presets, NeedNotMatch) {
  const absl::StatusOr<std::vector<PassCall>> calls = ParseTransforms("optimize_for_inference fold_batch_norms");
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_TRUE(calls->front().is_of_preset);
  EXPECT_FALSE(calls->back().is_of_preset);
}

TEST(Presets, ErrorsAreReportedTogether) {
  const absl::Status status = ParseTransforms("fold_constant, xyzzy; round_weights(num_steps=x, levls=2)").status();
  const std::string message(status.message());
  for (const char* expected :
       {"found 6 errors", "column 14: found ',', expected a blank", "column 21: found ';', expected a blank",
        "transform 'fold_constant' not recognized; did you mean 'fold_constants'",
        "transform 'xyzzy' not recognized, expected one of: ", "round_weights: unknown parameter 'levls'",
        "round_weights: parameter 'num_steps': found 'x'"}) {
    EXPECT_NE(message.find(expected), std::string::npos) << expected << "\n" << message;
  }
}

TEST(Presets, AreAmongTheNearestNames) {
  EXPECT_TRUE(absl::StrContains(FindPass("optimise_for_inference").status().message(), "'optimize_for_inference'"));
}

}  // namespace
}  // namespace permafrost
