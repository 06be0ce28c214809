// Tests of the detection of inputs and outputs, and of its errors for ambiguous graphs.
#include "tools/model/interface_declaration.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/tools/graph_from_text.h"

namespace permafrost {
namespace {

// Returns "inputs -> outputs" as declared, or the error.
std::string Found(const std::string& text, std::optional<std::string> inputs = std::nullopt,
                  std::optional<std::string> outputs = std::nullopt) {
  const std::unique_ptr<Graph> graph = GraphFromText(text);
  std::vector<std::string> notes;
  const absl::Status status = DeclareOrFindInterface(inputs, outputs, graph.get(), &notes);
  if (!status.ok()) return std::string(status.message());
  const auto name = [](std::string* out, const Endpoint& endpoint) { out->append(endpoint.text); };
  return absl::StrCat(absl::StrJoin(graph->inputs(), ",", name), " -> ", absl::StrJoin(graph->outputs(), ",", name));
}

TEST(InterfaceFinder, TakesPlaceholdersAndUnreadNodes) {
  EXPECT_EQ(Found("x = Placeholder()\ny = Relu(x)\nz = Neg(x)"), "x -> y,z");
}

TEST(InterfaceFinder, LeavesWhatNobodyNeeds) {
  EXPECT_EQ(Found("x = Placeholder()\nunused = Placeholder()\nc = Const()\ny = Relu(x)\nd = Neg(c)\nn = NoOp(^y)"
                  "\nz = Relu(x, ^n)"),
            "x -> z");
}

TEST(InterfaceFinder, LeavesTraining) {
  EXPECT_EQ(Found("x = Placeholder()\nlabel = Placeholder()\ny = Softmax(x)\n"
                  "loss = SoftmaxCrossEntropyWithLogits(y, label)\nmean = Neg(loss)\n"
                  "p = Softmax(y)\ng = ReluGrad(mean, x)\nright = Equal(y, label)\nacc = Relu(right)\n"
                  "s = ScalarSummary(x, acc)"),
            "x -> p");
}

TEST(InterfaceFinder, PlaceholdersWithDefaultsNeedNotBeFed) {
  EXPECT_EQ(Found("x = Placeholder()\nc = Const()\nkeep = PlaceholderWithDefault(c)\ny = Mul(x, keep)"), "x -> y");
  EXPECT_EQ(Found("c = Const()\nkeep = PlaceholderWithDefault(c)\ny = Relu(keep)"), "keep -> y");
}

TEST(InterfaceFinder, TakesWhatIsGiven) {
  const std::string graph = "x = Placeholder()\nw = Placeholder()\na = Add(x, w)\nb = Relu(x)\nc = Neg(b)";
  EXPECT_EQ(Found(graph, std::nullopt, "b"), "x -> b");
  EXPECT_EQ(Found(graph, "x"), "x -> c");
  EXPECT_EQ(Found(graph, "b:0"), "b:0 -> c");
  EXPECT_EQ(Found(graph, "", "a, c"), " -> a,c");
}

TEST(InterfaceFinder, ReportsAllUnknownNamesWithCandidates) {
  EXPECT_EQ(
      Found("image = Placeholder()\nprobabilities = Relu(image)", "imge,zzzzzz", "qqqqqq,probabilitis"),
      "found 4 errors\n  input 'imge' is not a node of the graph; did you mean 'image'?\n  input 'zzzzzz' is not a "
      "node of the graph; the inputs that were found are 'image'\n  output 'qqqqqq' is not a node of the graph; the "
      "outputs that were found are 'probabilities'\n  output 'probabilitis' is not a node of the graph; did you mean "
      "'probabilities'?");
}

TEST(InterfaceFinder, DoubtsOutputsThatNeedDifferentInputs) {
  const std::string message = Found("x = Placeholder()\nw = Placeholder()\na = Add(x, w)\nb = Relu(x)");
  EXPECT_TRUE(
      absl::StrContains(message, "'a' needs input 'w', and 'b' does not; name them, for example --outputs='a,b'"))
      << message;
  EXPECT_TRUE(absl::StrContains(message, "candidate 'b' (Relu)")) << message;
}

TEST(InterfaceFinder, DoubtsWhenNothingIsLeft) {
  EXPECT_TRUE(absl::StrContains(Found("x = Placeholder()\nn = NoOp(^x)"), "every node has consumers"));
  EXPECT_TRUE(absl::StrContains(Found("x = Placeholder()\nl = L2Loss(x)"), "belongs to training"));
}

TEST(InterfaceFinder, TakesAllOutputsOfANode) {
  const auto found = [](const std::string& op, std::optional<std::string> outputs) {
    const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\na = Relu(x)\nb = Neg(x)\ny = " + op);
    Node* node = graph->Find("y");
    if (node->op() == ops::kIdentityN) {
      node->SetAttr("T", AttrValue::TypeList({DType::kFloat, DType::kResource, DType::kFloat}));
    }
    std::vector<std::string> notes;
    EXPECT_TRUE(DeclareOrFindInterface("x", outputs, graph.get(), &notes).ok());
    const auto name = [](std::string* out, const Endpoint& endpoint) { out->append(endpoint.text); };
    return absl::StrJoin(graph->outputs(), ",", name);
  };
  EXPECT_EQ(found("IdentityN(a, x, b)", std::nullopt), "y,y:2");
  EXPECT_EQ(found("IdentityN(a, x, b)", "y"), "y,y:2");
  EXPECT_EQ(found("IdentityN(a, x, b)", "y:2"), "y:2");
  EXPECT_EQ(found("FusedBatchNorm(x, a, a, b, b)", std::nullopt), "y");
}

TEST(InterfaceFinder, AnswersMisspeltNames) {
  EXPECT_EQ(Found("image = Placeholder()\ny = Relu(image)", "imge", "y"),
            "input 'imge' is not a node of the graph; did you mean 'image'?");
}

TEST(InterfaceFinder, EndsOnCycles) {
  const std::unique_ptr<Graph> graph = GraphFromText("x = Placeholder()\na = Add(x, x)\nb = Relu(a)\ny = Neg(b)");
  graph->SetInput(graph->Find("a"), 1, {graph->Find("b"), 0});
  const FoundInterface found = FindInterface(*graph);
  ASSERT_EQ(found.outputs.size(), 1u);
  EXPECT_TRUE(found.outputs[0].is_chosen);
}

}  // namespace
}  // namespace permafrost
