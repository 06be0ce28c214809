// Tests of the mapping from nodes of the current graph to nodes of the loaded graph.
#include "graph/lineage.h"

#include "absl/strings/str_cat.h"
#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

constexpr size_t kNoLimit = 1000000;

class LineageTest : public testing::Test {
 protected:
  void SetUp() override {
    graph_.Float("x", Shape({2}));
    graph_.Add("a", ops::kRelu, {"x"}, {FloatT()});
    graph_.Add("b", ops::kNeg, {"a"}, {FloatT()});
    graph_.Add("c", ops::kAbs, {"b"}, {FloatT()});
    graph_->RecordLineage();
  }
  Node* Get(absl::string_view name) { return graph_->Find(name); }
  std::vector<absl::string_view> Origins(absl::string_view name) {
    return graph_->lineage()->OriginsOf(*Get(name), kNoLimit).names;
  }
  using Names = std::vector<absl::string_view>;

  TestGraph graph_;
};

TEST_F(LineageTest, IsAbsentUntilItIsRecorded) {
  TestGraph graph;
  Node* a = graph.Float("a", Shape({}));
  EXPECT_EQ(graph->lineage(), nullptr);
  const OriginScope scope(&graph.graph(), {a});
  graph->AddOrigins(a, a);
  EXPECT_EQ(graph->lineage(), nullptr);
}

TEST_F(LineageTest, AnUnchangedOrRenamedNodeIsItsOwnOrigin) {
  ASSERT_TRUE(graph_->Rename(Get("b"), "other").ok());
  ASSERT_TRUE(graph_->Rename(Get("c"), "b").ok());
  EXPECT_EQ(Origins("a"), Names({"a"}));
  EXPECT_EQ(Origins("other"), Names({"b"}));
  EXPECT_EQ(Origins("b"), Names({"c"}));
  EXPECT_EQ(graph_->lineage()->originals(), Names({"x", "a", "b", "c"}));
}

TEST_F(LineageTest, ANewNodeOriginatesFromTheMatchedNodes) {
  {
    const OriginScope scope(&graph_.graph(), {Get("c"), nullptr, Get("b")});
    graph_.Add("made", ops::kAbs);
  }
  graph_.Add("later", ops::kAbs);
  EXPECT_EQ(Origins("made"), Names({"b", "c"}));
  EXPECT_EQ(Origins("later"), Names());
  EXPECT_EQ(Origins("c"), Names({"c"}));
}

TEST_F(LineageTest, OriginsOfRemovedNodesMoveToTheFirstMatchedNode) {
  {
    const OriginScope scope(&graph_.graph(), {Get("c"), Get("b")});
    graph_->SetInput(Get("c"), 0, {Get("a"), 0});
    ASSERT_TRUE(graph_->RemoveNode(Get("b")).ok());
  }
  EXPECT_EQ(Origins("c"), Names({"b", "c"}));
}

TEST_F(LineageTest, OriginsOfRemovedNodesMoveToTheReplacement) {
  {
    const OriginScope scope(&graph_.graph(), {Get("b")});
    graph_->ReplaceUses({Get("b"), 0}, {Get("a"), 0});
    ASSERT_TRUE(graph_->RemoveNode(Get("b")).ok());
  }
  EXPECT_EQ(Origins("a"), Names({"a", "b"}));
  EXPECT_EQ(Origins("c"), Names({"c"}));
}

TEST_F(LineageTest, OriginsOfRemovedNodesMoveToNewNodesOtherwise) {
  graph_.Add("extra", ops::kNoOp);
  graph_->RecordLineage();
  {
    const OriginScope scope(&graph_.graph(), {Get("c")});
    Node* made = graph_.Add("made", ops::kNeg, {"b"}, {FloatT()});
    graph_->AddControlInput(made, Get("a"));
    ASSERT_TRUE(graph_->RemoveNode(Get("c")).ok());
    ASSERT_TRUE(graph_->RemoveNode(Get("extra")).ok());
  }
  EXPECT_EQ(Origins("made"), Names({"c", "extra"}));
}

TEST_F(LineageTest, OutsideOfScopesOnlyReplacementsAreRecorded) {
  Node* made = graph_.Add("made", ops::kNeg, {"a"}, {FloatT()});
  graph_->ReplaceUses({Get("b"), 0}, {made, 0});
  ASSERT_TRUE(graph_->RemoveNode(Get("b")).ok());
  EXPECT_EQ(Origins("made"), Names({"b"}));
  graph_->ReplaceUses({Get("a"), 0}, {Get("x"), 0});
  EXPECT_EQ(Origins("x"), Names({"x"}));
}

TEST_F(LineageTest, TheInnermostScopeApplies) {
  const OriginScope outer(&graph_.graph(), {Get("a")});
  {
    const OriginScope inner(&graph_.graph(), {Get("b")});
    graph_.Add("in", ops::kNoOp);
  }
  graph_.Add("out", ops::kNoOp);
  EXPECT_EQ(Origins("in"), Names({"b"}));
  EXPECT_EQ(Origins("out"), Names({"a"}));
}

TEST_F(LineageTest, ANodeStandsForTheOneWhosePlaceItHas) {
  const auto stands_for = [&](absl::string_view name) { return graph_->lineage()->StandsFor(*Get(name)); };
  ASSERT_TRUE(graph_->Rename(Get("a"), "renamed").ok());
  EXPECT_EQ(stands_for("renamed"), "a");
  {
    const OriginScope scope(&graph_.graph(), {Get("b")});
    graph_.Add("new_b", ops::kNeg, {"renamed"}, {FloatT()});
    graph_.Add("beside", ops::kNeg, {"renamed"}, {FloatT()});
    graph_->ReplaceUses({Get("b"), 0}, {Get("new_b"), 0});
    EXPECT_EQ(stands_for("new_b"), "") << "the replaced node still exists";
    ASSERT_TRUE(graph_->RemoveNode(Get("b")).ok());
  }
  EXPECT_EQ(stands_for("new_b"), "b");
  EXPECT_EQ(stands_for("beside"), "");
  {
    const OriginScope scope(&graph_.graph(), {Get("c")});
    graph_.Int("constant", 1);
    graph_.Add("new_c", ops::kNeg, {"renamed"}, {FloatT()});
    ASSERT_TRUE(graph_->RemoveNode(Get("c")).ok());
  }
  EXPECT_EQ(stands_for("new_c"), "c");
  EXPECT_EQ(stands_for("constant"), "");
  const std::unique_ptr<Graph> clone = graph_->Clone();
  EXPECT_EQ(clone->lineage()->StandsFor(*clone->Find("new_c")), "c");
  EXPECT_EQ(clone->lineage()->StandsFor(*clone->Find("renamed")), "a");
}

TEST_F(LineageTest, ACloneKeepsIt) {
  {
    const OriginScope scope(&graph_.graph(), {Get("c"), Get("b")});
    graph_->SetInput(Get("c"), 0, {Get("a"), 0});
    ASSERT_TRUE(graph_->RemoveNode(Get("b")).ok());
  }
  const std::unique_ptr<Graph> clone = graph_->Clone();
  ASSERT_NE(clone->lineage(), nullptr);
  EXPECT_EQ(clone->lineage()->OriginsOf(*clone->Find("c"), kNoLimit).names, Names({"b", "c"}));
  Node* made = *clone->AddNode("made", ops::kNoOp);
  EXPECT_EQ(clone->lineage()->OriginsOf(*made, kNoLimit).names, Names());
  EXPECT_EQ(Origins("c"), Names({"b", "c"}));
}

TEST_F(LineageTest, ExceedingTheLimitIsReported) {
  graph_->AddOrigins(Get("c"), Get("b"));
  graph_->AddOrigins(Get("c"), Get("a"));
  EXPECT_TRUE(graph_->lineage()->OriginsOf(*Get("c"), 3).is_complete);
  const Lineage::Origins origins = graph_->lineage()->OriginsOf(*Get("c"), 2);
  EXPECT_FALSE(origins.is_complete);
  EXPECT_EQ(origins.names.size(), 2u);
}

// Each rewrite adds one origin to a set that all later rewrites extend. Copying sets would take quadratic time.
TEST_F(LineageTest, ALongChainOfRewritesIsLinear) {
  constexpr int kNodes = 200000;
  TestGraph graph;
  Node* last = graph.Float("x", Shape({2}));
  for (int i = 0; i < kNodes; ++i) last = graph.Add(absl::StrCat("n", i), ops::kRelu, {std::string(last->name())});
  graph->RecordLineage();
  for (int i = 1; i < kNodes; ++i) {
    Node* head = graph->Find(absl::StrCat("n", i));
    Node* gone = head->input(0).node;
    const OriginScope scope(&graph.graph(), {head, gone});
    graph->SetInput(head, 0, gone->input(0));
    ASSERT_TRUE(graph->RemoveNode(gone).ok());
  }
  const Lineage::Origins origins = graph->lineage()->OriginsOf(*last, kNodes);
  EXPECT_TRUE(origins.is_complete);
  EXPECT_EQ(origins.names.size(), static_cast<size_t>(kNodes));
}

}  // namespace
}  // namespace permafrost
