// Tests that edits keep names, uses, order and interface of a graph consistent.
#include "graph/graph.h"

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

using Names = std::vector<std::string>;

class GraphTest : public testing::Test {
 protected:
  void TearDown() override { ExpectUsesAreCurrent(g.graph()); }
  Names Order() {
    Names names;
    for (const Node* node = g->first(); node != nullptr; node = node->next()) names.emplace_back(node->name());
    EXPECT_EQ(names.size(), g->num_nodes());
    return names;
  }
  TestGraph g;
};

TEST_F(GraphTest, DataInputsStayBeforeControlInputs) {
  for (const char* name : {"a", "b", "c"}) g.Add(name, ops::kNoOp);
  Node* n = g.Add("n", Op::Named("N"), {"^a", "^b", "c", "a:1"});
  EXPECT_EQ(InputsOf(n), (Names{"c", "a:1", "^a", "^b"}));
  EXPECT_EQ(n->num_data_inputs(), 2);
  g->RemoveInput(n, 0);
  EXPECT_EQ(InputsOf(n), (Names{"a:1", "^a", "^b"}));
  g->RemoveInput(n, 1);
  EXPECT_EQ(InputsOf(n), (Names{"a:1", "^b"}));
  g->AddControlInput(n, g->Find("b"));
  g->AddControlInput(n, n);
  EXPECT_EQ(InputsOf(n), (Names{"a:1", "^b"}));
  EXPECT_TRUE(g->Find("c")->uses().empty());
}

TEST_F(GraphTest, NamesAreUnique) {
  g.Add("a", ops::kNoOp);
  EXPECT_EQ(g->AddNode("a", ops::kConst).status().message(), "two nodes have the name 'a' (NoOp and Const)");
  EXPECT_FALSE(g->AddNode("", ops::kNoOp).ok());
  EXPECT_EQ(g->UniqueName("a"), "a_1");
  EXPECT_EQ(Order(), Names{"a"});
}

TEST_F(GraphTest, NodesInUseCannotBeRemoved) {
  Node* a = g.Add("a", ops::kNoOp);
  Node* b = g.Add("b", ops::kNoOp, {"^a"});
  Node* c = g.Add("c", ops::kNoOp, {"^b"});
  EXPECT_FALSE(g->RemoveNode(a).ok());
  std::vector<bool> remove(g->id_limit(), false);
  remove[a->id()] = remove[b->id()] = true;
  EXPECT_FALSE(g->RemoveNodes(remove).ok());
  EXPECT_EQ(Order(), (Names{"a", "b", "c"}));
  remove[c->id()] = true;
  ASSERT_TRUE(g->DeclareInterface({}, {"c"}).ok());
  EXPECT_EQ(g->RemoveNodes(remove).message(), "node 'c' (NoOp) cannot be removed: it is a declared output");
  remove = {false, true, true};
  ASSERT_TRUE(g->DeclareInterface({}, {"a"}).ok());
  ASSERT_TRUE(g->RemoveNodes(remove).ok());
  EXPECT_EQ(Order(), Names{"a"});
  EXPECT_TRUE(g->AddNode("b", ops::kNoOp).ok());
}

TEST_F(GraphTest, NamesCanBeExchanged) {
  Node* a = g.Add("a", ops::kNoOp);
  Node* b = g.Add("b", ops::kNoOp, {"^a"});
  ASSERT_TRUE(g->DeclareInterface({"a"}, {"b:2"}).ok());
  ASSERT_TRUE(g->RenameAll({{a, "b"}, {b, "a"}}).ok());
  EXPECT_EQ(g->Find("a"), b);
  EXPECT_EQ(InputsOf(b), Names{"^b"});
  EXPECT_EQ(g->inputs()[0].text, "b");
  EXPECT_EQ(g->outputs()[0].text, "a:2");
  // A failure leaves the graph unchanged.
  g.Add("c", ops::kNoOp);
  EXPECT_FALSE(g->RenameAll({{a, "x"}, {b, "c"}}).ok());
  EXPECT_FALSE(g->RenameAll({{a, "x"}, {b, "x"}}).ok());
  EXPECT_FALSE(g->Rename(a, "").ok());
  EXPECT_EQ(g->Find("a"), b);
  EXPECT_EQ(g->Find("b"), a);
  EXPECT_EQ(g->Find("x"), nullptr);
}

TEST_F(GraphTest, UsesAreReplacedByPort) {
  g.Add("a", Op::Named("A"));
  g.Add("b", Op::Named("B"), {"a"});
  Node* n = g.Add("n", Op::Named("N"), {"a", "a:1", "a", "^a"});
  g->ReplaceUses(g.Ref("a"), g.Ref("a:2"));
  EXPECT_EQ(InputsOf(n), (Names{"a:2", "a:1", "a:2", "^a"}));
  g->ReplaceUses(g.Ref("a:2"), g.Ref("a:2"));
  g->ReplaceUses(g.Ref("a:2"), g.Ref("b"));
  EXPECT_EQ(InputsOf(n), (Names{"b", "a:1", "b", "^a"}));
  EXPECT_EQ(InputsOf(g->Find("b")), Names{"b"});  // Every use is redirected, including that of b itself.
  g->SetInput(g->Find("b"), 0, g.Ref("a"));
  g->AddControlInput(n, g->Find("b"));
  g->ReplaceControlUses(g->Find("a"), g->Find("b"));
  EXPECT_EQ(InputsOf(n), (Names{"b", "a:1", "b", "^b"}));
  EXPECT_EQ(g->UsesOf(g.Ref("b")).size(), 2u);
  EXPECT_FALSE(g->HasDataUses(g.Ref("n")));
}

TEST_F(GraphTest, ACloneIsIndependent) {
  Node* a = g.Add("a", ops::kNoOp);
  g.Add("b", Op::Named("B"), {"a:1", "^a"}, {{"key", AttrValue::Int(1)}});
  a->set_device("/cpu:0");
  ASSERT_TRUE(g->DeclareInterface({"a", "missing"}, {"b"}).ok());
  const std::unique_ptr<Graph> copy = g->Clone();
  g->Find("b")->SetAttr("key", AttrValue::Int(2));
  g->ClearInputs(g->Find("b"));
  ASSERT_TRUE(g->Rename(a, "z").ok());
  EXPECT_EQ(*IntAttr(*copy->Find("b"), "key"), 1);
  EXPECT_EQ(InputsOf(copy->Find("b")), (Names{"a:1", "^a"}));
  EXPECT_EQ(copy->Find("a")->device(), "/cpu:0");
  EXPECT_TRUE(copy->IsOutput(copy->Find("b")));
  EXPECT_EQ(copy->inputs()[1].node, nullptr);
  EXPECT_EQ(&copy->Find("a")->graph(), copy.get());
  ExpectUsesAreCurrent(*copy);
}

TEST_F(GraphTest, OrderCanBeChanged) {
  Node* a = g.Add("a", ops::kNoOp);
  Node* b = g.Add("b", ops::kNoOp);
  ASSERT_TRUE(g->AddNode("c", ops::kNoOp, b).ok());
  EXPECT_EQ(Order(), (Names{"a", "c", "b"}));
  g->MoveBefore(a, nullptr);
  EXPECT_EQ(Order(), (Names{"c", "b", "a"}));
  g->SetOrder({a, b, g->Find("c")});
  EXPECT_EQ(Order(), (Names{"a", "b", "c"}));
}

TEST_F(GraphTest, InterfaceErrors) {
  g.Add("prediction", ops::kNoOp);
  EXPECT_EQ(g->DeclareInterface({}, {"predicton"}).message(),
            "output 'predicton' is not a node of the graph; did you mean 'prediction'?");
  EXPECT_FALSE(g->DeclareInterface({}, {"prediction:x"}).ok());
  EXPECT_FALSE(g->DeclareInterface({":0"}, {}).ok());
  EXPECT_TRUE(g->DeclareInterface({"prediction:0"}, {}).ok());
  EXPECT_TRUE(g->IsInput(g->Find("prediction")));
}

TEST_F(GraphTest, AttributesFallBackToTheSchema) {
  Node* conv = g.Add("c", ops::kConv2D);
  EXPECT_EQ(*StringAttr(*conv, "data_format"), "NHWC");
  EXPECT_EQ(IntAttr(*conv, "nothing").status().message(), "node 'c' (Conv2D): attr 'nothing' is missing");
  conv->SetAttr("data_format", AttrValue::Int(1));
  EXPECT_EQ(StringAttr(*conv, "data_format").status().message(),
            "node 'c' (Conv2D): attr 'data_format': has a value of kind int, expected string");
  EXPECT_TRUE(conv->RemoveAttr("data_format"));
  EXPECT_FALSE(conv->RemoveAttr("data_format"));
}

}  // namespace
}  // namespace permafrost
