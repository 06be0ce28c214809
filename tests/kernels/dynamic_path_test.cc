// Runs every recorded case with shapes that are known only during the run: after a Switch and a Merge of V1 control
// flow, at the top level of a graph and in the body of a function. The results must equal those recorded from
// TensorFlow, and those of the same node in a graph without control flow.
//
// A node after a Merge is prepared during the run and keeps all its constants in memory, whereas a static node releases
// those that its kernel has packed. So each input of a case varies once while the others are constants, and once all
// inputs vary.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"
#include "gtest/gtest.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/kernel.h"
#include "runtime_check/session.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/kernels/through_merge.h"

namespace permafrost {
namespace {

// Sources of the values that the node under test reads.
enum class Way { kDirect, kThroughMerge, kThroughMergeInFunction };

std::string NameOf(Way way) {
  return way == Way::kDirect ? "direct" : way == Way::kThroughMerge ? "through Merge" : "through Merge in a function";
}

std::string ArgName(size_t i) { return absl::StrCat("arg", i); }
std::string OutName(size_t i) { return absl::StrCat("out", i); }

// Returns a graph of the recorded node. Varying inputs come from nodes of op `source`, named ArgName(i); the branch
// condition comes from ArgName(inputs.size()).
std::unique_ptr<Graph> GraphOf(const RecordedCase& recorded, const std::vector<bool>& varies, Way way, Op source) {
  auto graph = std::make_unique<Graph>();
  const auto add_source = [&](size_t i, DType dtype) {
    Node* node = *graph->AddNode(ArgName(i), source);
    node->SetAttr(source == ops::kPlaceholder ? "dtype" : "T", AttrValue::Type(dtype));
    if (source == ops::kPlaceholder) node->SetAttr("shape", AttrValue::OfShape(Shape::UnknownRank()));
    return TensorRef{node, 0};
  };
  const size_t count = recorded.inputs.size();
  const TensorRef choice = add_source(count, DType::kBool);
  Node* node = *graph->AddNode("node", recorded.node->op());
  node->CopyAttrs(*recorded.node);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& value = recorded.inputs[i];
    if (!varies[i]) {
      graph->AddInput(node, {*graph->AddConst(absl::StrCat("const", i), value), 0});
      continue;
    }
    const TensorRef given = add_source(i, value.dtype());
    graph->AddInput(node, way == Way::kDirect ? given : ThroughMerge(graph.get(), i, given, choice, value.dtype()));
  }
  return graph;
}

// Returns a graph that calls a function whose body contains the node and its surroundings.
absl::StatusOr<std::unique_ptr<Graph>> CallOf(const RecordedCase& recorded, const std::vector<bool>& varies,
                                              const std::vector<DType>& output_types) {
  const std::unique_ptr<Graph> body = GraphOf(recorded, varies, Way::kThroughMerge, ops::k_Arg);
  std::vector<std::string> args, results;
  std::vector<DType> arg_types;
  std::string signature = "library { function { signature { name: \"f\" ", returns;
  for (size_t i = 0; i <= varies.size(); ++i) {
    if (i < varies.size() && !varies[i]) continue;
    arg_types.push_back(i < varies.size() ? recorded.inputs[i].dtype() : DType::kBool);
    body->Find(ArgName(i))->SetAttr("index", AttrValue::Int(static_cast<int64_t>(args.size())));
    args.push_back(ArgName(i));
    absl::StrAppend(&signature, "input_arg { name: \"", args.back(), "\" type: ", static_cast<int>(arg_types.back()),
                    " } ");
  }
  for (size_t i = 0; i < output_types.size(); ++i) {
    results.push_back(OutName(i));
    Node* result = *body->AddNode(results.back(), ops::k_Retval);
    result->SetAttr("T", AttrValue::Type(output_types[i]));
    result->SetAttr("index", AttrValue::Int(static_cast<int64_t>(i)));
    body->AddInput(result, {body->Find("node"), static_cast<int>(i)});
    absl::StrAppend(&signature, "output_arg { name: \"", results.back(), "\" type: ", static_cast<int>(output_types[i]),
                    " } ");
    absl::StrAppend(&returns, "ret { key: \"", results.back(), "\" value: \"", args[0], "\" } ");
  }
  PF_RETURN_IF_ERROR(body->DeclareInterface(args, results));
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ReadGraphDefText(absl::StrCat(signature, "} ", returns, "} }")));
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  PF_RETURN_IF_ERROR(library.SetBody("f", *body));
  library.Store(graph.get());

  Node* call = *graph->AddNode("node", ops::kPartitionedCall);
  call->SetAttr("Tin", AttrValue::TypeList(arg_types));
  call->SetAttr("Tout", AttrValue::TypeList(output_types));
  call->SetAttr("f", AttrValue::Function({"f", {}}));
  for (size_t i = 0; i < args.size(); ++i) {
    Node* node = *graph->AddNode(args[i], ops::kPlaceholder);
    node->SetAttr("dtype", AttrValue::Type(arg_types[i]));
    node->SetAttr("shape", AttrValue::OfShape(Shape::UnknownRank()));
    graph->AddInput(call, {node, 0});
  }
  return graph;
}

Tensor Choice(bool value) {
  char* data = nullptr;
  Tensor tensor = *Tensor::Allocate(DType::kBool, Shape(), &data);
  *data = value ? 1 : 0;
  return tensor;
}

absl::StatusOr<std::vector<Tensor>> RunCase(const RecordedCase& recorded, const std::vector<bool>& varies, Way way,
                                            int num_threads) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*recorded.node));
  std::unique_ptr<Graph> graph;
  if (way == Way::kThroughMergeInFunction) {
    PF_ASSIGN_OR_RETURN(graph, CallOf(recorded, varies, types));
  } else {
    graph = GraphOf(recorded, varies, way, ops::kPlaceholder);
  }
  std::vector<std::string> feeds, fetches;
  std::vector<Tensor> values;
  for (size_t i = 0; i < varies.size(); ++i) {
    if (!varies[i]) continue;
    feeds.push_back(ArgName(i));
    values.push_back(recorded.inputs[i]);
  }
  feeds.push_back(ArgName(varies.size()));
  for (size_t i = 0; i < types.size(); ++i) fetches.push_back(absl::StrCat("node:", i));
  SessionOptions options;
  options.num_threads = num_threads;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(*graph, feeds, fetches, options));
  std::vector<Tensor> outputs;
  // Runs with the other branch, and runs with everything prepared, must have the same results; only a random op draws
  // further numbers in each run.
  const OpSchema* schema = FindSchema(recorded.node->op());
  const bool is_random = schema != nullptr && schema->Is(kRandom);
  for (const bool choice : is_random ? std::vector<bool>{true} : std::vector<bool>{false, true, true}) {
    std::vector<Tensor> given = values;
    given.push_back(Choice(choice));
    PF_ASSIGN_OR_RETURN(std::vector<Tensor> again, session->Run(given));
    if (!outputs.empty() && again != outputs) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        PF_RETURN_IF_ERROR(Annotate(CompareWithRecorded(again[i], outputs[i]), absl::StrCat("run again: output ", i)));
      }
    }
    outputs = std::move(again);
  }
  return outputs;
}

absl::Status CompareAll(const std::vector<Tensor>& actual, const std::vector<std::optional<Tensor>>& expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!expected[i].has_value()) continue;
    PF_RETURN_IF_ERROR(Annotate(CompareWithRecorded(actual[i], *expected[i]), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

class DynamicPathTest : public testing::TestWithParam<std::string> {};

TEST_P(DynamicPathTest, ResultsAreThoseOfTheStaticPath) {
  const absl::StatusOr<std::unique_ptr<Graph>> family = ReadRecordedFamily(GetParam());
  ASSERT_TRUE(family.ok()) << family.status();
  int compared = 0;
  for (const Node* node : RecordedNodes(**family)) {
    const absl::StatusOr<RecordedCase> recorded = ReadRecordedCase(**family, *node);
    ASSERT_TRUE(recorded.ok()) << node->Describe() << ": " << recorded.status();
    const size_t count = recorded->inputs.size();
    // The last iteration: all inputs vary.
    for (size_t varying = 0; varying <= count; ++varying) {
      std::vector<bool> varies(count, varying == count);
      if (varying < count) varies[varying] = true;
      if (varying == count && count == 1) continue;  // Equal to the previous iteration.
      const int num_threads = varying % 2 == 0 ? 1 : 3;
      const auto direct = RunCase(*recorded, varies, Way::kDirect, num_threads);
      ASSERT_TRUE(direct.ok()) << node->Describe() << ", input " << varying << " varies: " << direct.status();
      for (const Way way : {Way::kThroughMerge, Way::kThroughMergeInFunction}) {
        const auto place = [&] {
          return absl::StrCat(node->Describe(), ", ", NameOf(way), ", input ", varying, " of ", count, " varies");
        };
        const auto actual = RunCase(*recorded, varies, way, num_threads);
        EXPECT_TRUE(actual.ok()) << place() << ": " << actual.status();
        if (!actual.ok()) continue;
        const absl::Status recorded_agrees = CompareAll(*actual, recorded->expected);
        EXPECT_TRUE(recorded_agrees.ok()) << place() << ": " << recorded_agrees;
        const absl::Status direct_agrees =
            CompareAll(*actual, std::vector<std::optional<Tensor>>(direct->begin(), direct->end()));
        EXPECT_TRUE(direct_agrees.ok()) << place() << ", against the static path: " << direct_agrees;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, DynamicPathTest, testing::ValuesIn(RecordedFamilies()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace permafrost
