// Tests that the validator reports every kind of problem and accepts valid graphs.
#include "graph/validation/validate.h"

#include "tests/graph/test_graph.h"

namespace permafrost {
namespace {

class ValidateTest : public testing::Test {
 protected:
  std::string Problem() { return std::string(Validate(g.graph()).message()); }
  TestGraph g;
};

TEST_F(ValidateTest, SoundGraph) {
  g.Float("x", {2});
  g.Int("axis", 0);
  g.Add("split", ops::kSplit, {"axis", "x"}, {FloatT(), {"num_split", AttrValue::Int(2)}});
  g.Add("sum", ops::kAddV2, {"split", "split:1"}, {FloatT()});
  g.Add("foreign", Op::Named("Foreign"), {"sum"});
  g.Add("after", ops::kRelu, {"foreign:7", "^x"}, {FloatT()});
  g.Add("bare", ops::kNoOp);
  ASSERT_TRUE(g->DeclareInterface({"x"}, {"after", "bare"}).ok());
  EXPECT_EQ(Validate(g.graph()), absl::OkStatus());
}

TEST_F(ValidateTest, Ports) {
  g.Float("x", {2});
  g.Add("y", ops::kRelu, {"x:1"}, {FloatT()});
  EXPECT_EQ(Problem(), "node 'y' (Relu): input 0 is 'x:1', but node 'x' (Placeholder) has 1 output");
}

TEST_F(ValidateTest, Arity) {
  g.Float("x", {2});
  g.Add("y", ops::kAddV2, {"x"}, {FloatT()});
  g.Add("p", ops::kPack, {"x"}, {FloatT(), {"N", AttrValue::Int(2)}});
  EXPECT_EQ(Problem(), "node 'y' (AddV2): found 1 input, expected 2; node 'p' (Pack): found 1 input, expected 2");
}

TEST_F(ValidateTest, Types) {
  g.Float("x", {2});
  g.Add("y", ops::kRelu, {"x"}, {IntT()});
  EXPECT_EQ(Problem(), "node 'y' (Relu): input 0 is 'x' of type float, expected int32");
}

TEST_F(ValidateTest, TypesThatDoNotBelongTogether) {
  g.Float("x", {2});
  Node* c = g.Add("c", ops::kComplex, {"x", "x"}, {FloatT()});
  EXPECT_EQ(Validate(g.graph()), absl::OkStatus()) << "the default of Tout fits";
  c->SetAttr("Tout", AttrValue::Type(DType::kComplex128));
  EXPECT_EQ(Problem(),
            "node 'c' (Complex): attr 'Tout' is complex128 and 'T' is float, expected 'Tout' to be the complex type "
            "with parts of that type");
}

TEST_F(ValidateTest, Constants) {
  Node* c = g.Int("c", 1);
  c->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  EXPECT_EQ(Problem(), "node 'c' (Const): attr 'dtype' is float, but attr 'value' holds int32");
  const std::string bad =
      "\x42\x09\x08\x01\x12\x00\x22\x03"
      "abc";  // A float scalar of three bytes.
  c->SetAttr("value", AttrValue::FromWire(absl::string_view(bad.data(), 11), nullptr));
  EXPECT_NE(Problem().find("node 'c' (Const): attr 'value' "), std::string::npos);
  c->RemoveAttr("value");
  EXPECT_EQ(Problem(), "node 'c' (Const): attr 'value' is missing");
}

TEST_F(ValidateTest, Cycles) {
  Node* a = g.Add("a", ops::kRelu, {}, {FloatT()});
  g.Add("b", ops::kRelu, {"a"}, {FloatT()});
  g->AddInput(a, g.Ref("b"));
  EXPECT_EQ(Problem(), "2 nodes in a cycle or behind one; the cycle has 2 nodes: b -> a");
}

TEST_F(ValidateTest, Endpoints) {
  g.Float("x", {2});
  ASSERT_TRUE(g->DeclareInterface({}, {"x:3"}).ok());
  EXPECT_EQ(Problem(), "declared output 'x:3': node 'x' (Placeholder) has 1 output");
}

TEST_F(ValidateTest, AtMostFiveProblems) {
  for (int i = 0; i < 9; ++i) g.Add(absl::StrCat("n", i), ops::kRelu, {}, {FloatT()});
  EXPECT_NE(Problem().find("'n4'"), std::string::npos);
  EXPECT_EQ(Problem().find("'n5'"), std::string::npos);
}

}  // namespace
}  // namespace permafrost
