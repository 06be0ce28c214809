// Checks plans for graphs that read and assign variables: known shapes make all nodes static, and a plan is made again
// when the shape of a variable changes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/tensor.h"
#include "gtest/gtest.h"
#include "runtime_check/session.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {
namespace {

class VariableGraph : public SmallGraph {
 public:
  // Adds the input "x", and the variable "v" of unknown shape with an initial value.
  VariableGraph(const Shape& input, Tensor initial) {
    Placeholder("x", DType::kFloat, input);
    Add("v", "VarHandleOp", {},
        {{"dtype", AttrValue::Type(DType::kFloat)}, {"shape", AttrValue::OfShape(Shape::UnknownRank())}});
    Const("initial", std::move(initial));
    OnVariable("v/Assign", "AssignVariableOp", {"v", "initial"});
    OnVariable("read", "ReadVariableOp", {"v"});
  }
  Node* OnVariable(const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
    return Add(name, op, inputs, {{"dtype", AttrValue::Type(DType::kFloat)}});
  }
  std::unique_ptr<Session> Start() {
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(graph(), {"x"}, {"out"});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
};

Tensor RunOnce(Session* session, const Tensor& x) {
  const absl::StatusOr<std::vector<Tensor>> outputs = session->Run({x});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? outputs->front() : Tensor();
}

TEST(VariablesTest, AnAccumulatorIsStatic) {
  VariableGraph graph(Shape({2}), Floats({2}, {1, 2}));
  graph.Float("sum", "AddV2", {"read", "x"});
  graph.OnVariable("update", "AssignVariableOp", {"v", "sum"});
  graph.Float("out", "Identity", {"sum", "^update"});
  const std::unique_ptr<Session> session = graph.Start();
  ASSERT_NE(session, nullptr);
  const absl::StatusOr<std::vector<TensorSpec>> specs = session->Plan({Shape({2})});
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(specs->front().shape, Shape({2}));
  EXPECT_EQ(session->report().num_dynamic, 0);
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {1, 1}))), (std::vector<float>{2, 3}));
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {1, 1}))), (std::vector<float>{3, 4}));
  std::vector<float> result(2);
  ASSERT_TRUE(
      session->RunInto({Floats({2}, {1, 1})}, {absl::Span<char>(reinterpret_cast<char*>(result.data()), 8)}).ok());
  EXPECT_EQ(result, (std::vector<float>{4, 5}));
}

TEST(VariablesTest, AVariableMayGrow) {
  VariableGraph graph(Shape({2}), Floats({1}, {5}));
  graph.Const("axis", Tensor::Scalar<int32_t>(0));
  graph.Add(
      "joined", "ConcatV2", {"read", "x", "axis"},
      {{"T", AttrValue::Type(DType::kFloat)}, {"Tidx", AttrValue::Type(DType::kInt32)}, {"N", AttrValue::Int(2)}});
  graph.OnVariable("update", "AssignVariableOp", {"v", "joined"});
  graph.Float("out", "Identity", {"joined", "^update"});
  const std::unique_ptr<Session> session = graph.Start();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {1, 2}))), (std::vector<float>{5, 1, 2}));
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {3, 4}))), (std::vector<float>{5, 1, 2, 3, 4}));
}

TEST(VariablesTest, APlanIsMadeAgainWhenAVariableHasAnotherShape) {
  VariableGraph graph(Shape({kUnknownDim}), Floats({2}, {1, 2}));
  graph.OnVariable("update", "AssignVariableOp", {"v", "x"});
  graph.mutable_graph().AddControlInput(graph.mutable_graph().Find("update"), graph.mutable_graph().Find("read"));
  graph.Float("out", "Neg", {"read", "^update"});
  const std::unique_ptr<Session> session = graph.Start();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {3, 4}))), (std::vector<float>{-1, -2}));
  EXPECT_EQ(session->report().num_dynamic, 0);
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({3}, {5, 6, 7}))), (std::vector<float>{-3, -4}));
  // The plan for inputs of this shape expects two elements in the variable.
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {8, 9}))), (std::vector<float>{-5, -6, -7}));
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({2}, {1, 1}))), (std::vector<float>{-8, -9}));
}

TEST(VariablesTest, AnAliasOfAHandleMayAssignAnyShape) {
  VariableGraph graph(Shape({3}), Floats({2}, {1, 2}));
  graph.Add("alias", "Identity", {"v"}, {{"T", AttrValue::Type(DType::kResource)}});
  graph.OnVariable("update", "AssignVariableOp", {"alias", "x"});
  graph.OnVariable("again", "ReadVariableOp", {"v"});
  graph.mutable_graph().AddControlInput(graph.mutable_graph().Find("update"), graph.mutable_graph().Find("read"));
  graph.mutable_graph().AddControlInput(graph.mutable_graph().Find("again"), graph.mutable_graph().Find("update"));
  graph.Float("first", "Neg", {"read"});
  graph.Float("out", "Neg", {"again", "^first"});
  const std::unique_ptr<Session> session = graph.Start();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(ToVector(RunOnce(session.get(), Floats({3}, {5, 6, 7}))), (std::vector<float>{-5, -6, -7}));
}

}  // namespace
}  // namespace permafrost
