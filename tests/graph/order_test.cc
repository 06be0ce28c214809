// Tests of topological orders, cycles and reachability.
#include "graph/analysis/order.h"

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

std::string Names(const absl::StatusOr<std::vector<Node*>>& order) {
  if (!order.ok()) return std::string(order.status().message());
  std::string text;
  for (const Node* node : *order) absl::StrAppend(&text, text.empty() ? "" : " ", node->name());
  return text;
}

TEST(OrderTest, StableOrderKeepsTheFileWhereItCan) {
  TestGraph g;
  for (const char* name : {"z", "b", "a", "c"}) g.Add(name, ops::kNoOp);
  g->AddControlInput(g->Find("z"), g->Find("a"));
  EXPECT_EQ(Names(StableTopologicalOrder(g.graph())), "b a z c");
  EXPECT_EQ(Names(StackTopologicalOrder(g.graph())), "c a z b");
}

TEST(OrderTest, CyclesAreNamed) {
  TestGraph g;
  for (const char* name : {"a", "b", "c", "behind"}) g.Add(name, ops::kNoOp);
  g->AddControlInput(g->Find("b"), g->Find("a"));
  g->AddControlInput(g->Find("c"), g->Find("b"));
  g->AddControlInput(g->Find("a"), g->Find("c"));
  g->AddControlInput(g->Find("behind"), g->Find("c"));
  EXPECT_EQ(Names(StableTopologicalOrder(g.graph())),
            "4 nodes in a cycle or behind one; the cycle has 3 nodes: b -> c -> a");
  EXPECT_FALSE(CheckAcyclic(g.graph()).ok());
  EXPECT_FALSE(StackTopologicalOrder(g.graph()).ok());
}

TEST(OrderTest, AMergeWaitsForItsControlInputsAndOneDataInput) {
  TestGraph g;
  g.Add("merge", ops::kMerge);
  for (const char* name : {"x", "y", "late"}) g.Add(name, ops::kNoOp);
  Node* merge = g->Find("merge");
  g->AddInput(merge, g.Ref("x"));
  g->AddInput(merge, g.Ref("y"));
  g->AddControlInput(merge, g->Find("late"));
  EXPECT_EQ(Names(StableTopologicalOrder(g.graph())), "x y late merge");
  g.Add("next", ops::kNextIteration, {"merge"});
  g->SetInput(merge, 1, g.Ref("next"));
  EXPECT_EQ(Names(StableTopologicalOrder(g.graph())), "x y late merge next");
  EXPECT_TRUE(CheckAcyclic(g.graph()).ok());
}

TEST(OrderTest, ReachedBackwardsStops) {
  TestGraph g;
  g.Add("a", ops::kNoOp);
  g.Add("b", ops::kNoOp, {"^a"});
  g.Add("c", ops::kNoOp, {"^b"});
  EXPECT_EQ(ReachedBackwards(g.graph(), {g->Find("c")}, {}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(ReachedBackwards(g.graph(), {g->Find("c")}, {false, true, false}), (std::vector<bool>{false, true, true}));
}

}  // namespace
}  // namespace permafrost
