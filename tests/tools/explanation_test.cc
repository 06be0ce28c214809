// Tests of the grouping of near misses for --explain.
#include "tools/transform/explanation.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "tests/tools/graph_from_text.h"
#include "transforms/way_out.h"

namespace permafrost {
namespace {

MissedRewrite MissOf(int i, const std::string& way_out = "") {
  return {absl::StrCat("m", i), "Mul", absl::StrCat("input 1, node 'w", i, "' (Relu), is not constant"), way_out, 1};
}

TEST(Explanation, CountsEqualReasons) {
  std::vector<MissedRewrite> misses;
  for (int i = 0; i < 100; ++i) misses.push_back(MissOf(i));
  misses.push_back({"m", "Mul", "has 2 users, expected one", "run merge_duplicate_nodes first", 1});
  const std::vector<std::string> lines = ExplainMisses(misses);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "node 'm' (Mul): has 2 users, expected one; run merge_duplicate_nodes first");
  EXPECT_EQ(lines[1],
            "100 Mul ('m0', 'm1', 'm2' and 97 more), of which the first: input 1, node 'w0' (Relu), is not constant");
}

TEST(Explanation, PutsTheNearestFirstAndCountsTheRest) {
  std::vector<MissedRewrite> misses;
  for (size_t i = 0; i < kMostMissGroups + 3; ++i) {
    misses.push_back({"n", "Mul", std::string(i + 1, 'x'), "", 3});
  }
  misses.push_back({"near", "Mul", "y", "", 1});
  const std::vector<std::string> lines = ExplainMisses(misses);
  ASSERT_EQ(lines.size(), kMostMissGroups + 1);
  EXPECT_EQ(lines[0], "node 'near' (Mul): y");
  EXPECT_EQ(lines.back(), "4 more for 4 other reasons; --json has them all");
}

std::string WayOutIn(const std::string& text, NearMiss::Kind kind, absl::string_view name) {
  const std::unique_ptr<Graph> graph = GraphFromText(text);
  EXPECT_TRUE(graph->DeclareInterface({"x"}, {"y"}).ok());
  return WayOutOf({kind, {graph->Find(name), 0}, "", "", 1});
}

TEST(WayOut, NamesThePassThatHelps) {
  EXPECT_EQ(WayOutIn("x = Placeholder()\nw = Const()\ns = Neg(w)\ny = Mul(x, s)", NearMiss::Kind::kNotConstant, "s"),
            "run fold_constants first");
  EXPECT_EQ(WayOutIn("x = Placeholder()\ns = Neg(x)\ny = Mul(x, s)", NearMiss::Kind::kNotConstant, "s"),
            "it depends on the input 'x'");
  EXPECT_EQ(WayOutIn("x = Placeholder()\nv = VariableV2()\ny = Mul(x, v)", NearMiss::Kind::kNotConstant, "v"),
            "freeze the variable 'v' into a constant first");
  EXPECT_EQ(
      WayOutIn("x = Placeholder()\nn = Neg(x)\na = Relu(n)\nb = Relu(n)\ny = Mul(a, b)", NearMiss::Kind::kShared, "n"),
      "run merge_duplicate_nodes first");
  EXPECT_EQ(WayOutIn("x = Placeholder()\nn = Neg(x)\na = Relu(n)\ny = Mul(a, n)", NearMiss::Kind::kShared, "n"), "");
  EXPECT_EQ(WayOutIn("x = Placeholder()\nn = Neg(x)\na = Relu(x, ^n)\ny = Mul(n, a)", NearMiss::Kind::kShared, "n"),
            "the other uses are control edges, which remove_control_dependencies removes");
  EXPECT_EQ(WayOutIn("x = Placeholder()\ni = Identity(x)\ny = Relu(i)", NearMiss::Kind::kOtherOp, "i"),
            "run remove_nodes(op=Identity) first");
  EXPECT_EQ(WayOutIn("x = Placeholder()\ny = Relu(x)", NearMiss::Kind::kEndpoint, "y"),
            "if you do not fetch 'y', leave it out of the outputs");
}

TEST(WayOut, FollowsFromAStatusToo) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\nw = Const()\ns = Neg(w)\ny = Mul(x, s)");
  PassContext context;
  context.wants_misses = true;
  const absl::Status status =
      NotMatched(NearMiss::Kind::kNotConstant, {graph->Find("s"), 0}, "its scale is not constant");
  context.Miss(*graph->Find("y"), Annotate(status, "conv"));
  ASSERT_EQ(context.misses.size(), 1u);
  EXPECT_EQ(context.misses[0].ToString(), "node 'y' (Mul): conv: its scale is not constant; run fold_constants first");
}

TEST(Matcher, CountsWhatFailed) {
  const std::unique_ptr<Graph> graph = GraphFromText(
      "x = Placeholder()\nw = Const()\nn = Neg(x)\nconv = MatMul(x, n)\na = Mul(conv, w)\nb = Mul(n, conv)\nc = Mul(x, "
      "n)");
  const Pattern pattern =
      Pattern::OneOf({ops::kMul})
          .InAnyOrder(Pattern::OneOf({ops::kMatMul}).Input(1, Pattern::Constant()), Pattern::Constant());
  const auto failures = [&](absl::string_view name) {
    Match match;
    NearMiss near_miss;
    EXPECT_FALSE(Matches(pattern, *graph->Find(name), &match, &near_miss));
    return near_miss.num_failures;
  };
  EXPECT_EQ(failures("a"), 1);
  EXPECT_EQ(failures("b"), 2);
  EXPECT_EQ(failures("c"), 3);
}

}  // namespace
}  // namespace permafrost
