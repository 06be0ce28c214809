// Tests arguments of passes: types, bounds, repetition, and the expectations in error messages.
#include "transforms/pass.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

struct Params {
  std::string text = "x";
  bool flag = true;
  int32_t small = 3;
  int64_t large = 4;
  float ratio = 0.5f;
  std::optional<int32_t> maybe;
  std::vector<std::string> list;
};

Params* last = nullptr;

absl::StatusOr<int64_t> Keep(Graph*, const Params& params, PassContext*) {
  *last = params;
  return 0;
}

PassDefinition Definition() {
  return Pass<Params>("Keeps its parameters.")
      .Param("text", &Params::text, "A text.")
      .Param("flag", &Params::flag, "A flag.")
      .Param("small", &Params::small, "A number.", Between(-10, 10))
      .Param("large", &Params::large, "A number.")
      .Param("ratio", &Params::ratio, "A ratio.", AtLeast(0))
      .Param("maybe", &Params::maybe, "A number or none.", AtLeast(1))
      .Param("list", &Params::list, "Texts.", Required())
      .Run(Keep);
}

// Returns OK, or the message.
std::string RunWith(std::vector<PassArgument> arguments, Params* params) {
  last = params;
  Graph graph;
  PassContext context;
  const absl::StatusOr<int64_t> result = Definition().run(&graph, arguments, &context);
  return result.ok() ? "OK" : std::string(result.status().message());
}

std::string Error(const std::string& name, const std::string& value) {
  Params params;
  return RunWith({{"list", "x"}, {name, value}}, &params);
}

TEST(Params, DefaultsHold) {
  Params params;
  EXPECT_EQ(RunWith({{"list", "a"}}, &params), "OK");
  EXPECT_EQ(params.text, "x");
  EXPECT_FALSE(params.maybe.has_value());
}

TEST(Params, AreParsed) {
  Params params;
  EXPECT_EQ(RunWith({{"text", ""},
                     {"flag", "0"},
                     {"small", "-7"},
                     {"large", "9223372036854775807"},
                     {"ratio", "1e-3"},
                     {"maybe", "1"},
                     {"list", "a"},
                     {"list", "b,c"}},
                    &params),
            "OK");
  EXPECT_EQ(params.text, "");
  EXPECT_FALSE(params.flag);
  EXPECT_EQ(params.small, -7);
  EXPECT_EQ(params.large, INT64_MAX);
  EXPECT_FLOAT_EQ(params.ratio, 1e-3f);
  EXPECT_EQ(params.maybe, 1);
  EXPECT_EQ(params.list, (std::vector<std::string>{"a", "b,c"}));
}

TEST(Params, BadValuesSayWhatWasExpected) {
  EXPECT_EQ(Error("flag", "True"), "parameter 'flag': found 'True', expected true, false, 0 or 1");
  EXPECT_EQ(Error("small", "-2.5"), "parameter 'small': found '-2.5', expected a whole number of 32 bits");
  EXPECT_EQ(Error("small", "2147483648"), "parameter 'small': found '2147483648', expected a whole number of 32 bits");
  EXPECT_EQ(Error("large", "9223372036854775808"),
            "parameter 'large': found '9223372036854775808', expected a whole number of 64 bits");
  EXPECT_EQ(Error("small", ""), "parameter 'small': found '', expected a whole number of 32 bits");
  EXPECT_EQ(Error("ratio", "half"), "parameter 'ratio': found 'half', expected a number");
}

TEST(Params, BoundsHold) {
  EXPECT_EQ(Error("small", "10"), "OK");
  EXPECT_EQ(Error("small", "11"), "parameter 'small' is 11, expected -10 to 10");
  EXPECT_EQ(Error("ratio", "-0.5"), "parameter 'ratio' is -0.5, expected at least 0");
  EXPECT_EQ(Error("ratio", "nan"), "parameter 'ratio' is nan, expected at least 0");
  EXPECT_EQ(Error("maybe", "0"), "parameter 'maybe' is 0, expected at least 1");
}

TEST(Params, OnceMissingAndUnknown) {
  Params params;
  EXPECT_EQ(RunWith({{"list", "x"}, {"text", "a"}, {"text", "b"}}, &params),
            "expected a single 'text' parameter, but found 2 occurrences");
  EXPECT_TRUE(absl::StartsWith(RunWith({}, &params), "parameter 'list' is missing"));
  const std::string unknown = Error("flg", "true");
  EXPECT_TRUE(absl::StartsWith(unknown, "unknown parameter 'flg'; did you mean 'flag'?")) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown, "(accepted: text, flag, small, large, ratio, maybe, list, ignore_errors)"));
}

TEST(Params, AreDescribed) {
  const PassDefinition definition = Definition();
  ASSERT_EQ(definition.params.size(), 7);
  EXPECT_EQ(definition.params[2].type, "int32");
  EXPECT_EQ(definition.params[2].default_value, "3");
  EXPECT_EQ(definition.params[2].bounds, "-10 to 10");
  EXPECT_EQ(definition.params[5].default_value, "");
  EXPECT_TRUE(definition.params[6].is_list);
  EXPECT_TRUE(definition.params[6].is_required);
}

TEST(PassContext, MissesAreCollectedOnlyWhenWanted) {
  Graph graph;
  Node* node = *graph.AddNode("n", ops::kNoOp);
  PassContext context;
  context.MissIfWanted(*node, "has ", 3, " inputs");
  EXPECT_TRUE(context.misses.empty());
  context.wants_misses = true;
  context.MissIfWanted(*node, "has ", 3, " inputs");
  context.MissIfWanted(*node, WayOut{"give it fewer"}, "has ", 3, " inputs");
  ASSERT_EQ(context.misses.size(), 2u);
  EXPECT_EQ(context.misses[0].ToString(), "node 'n' (NoOp): has 3 inputs");
  EXPECT_EQ(context.misses[1].ToString(), "node 'n' (NoOp): has 3 inputs; give it fewer");
  EXPECT_EQ(context.num_misses, 3);
}

}  // namespace
}  // namespace permafrost
