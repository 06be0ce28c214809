// Tests the runner: order, undoing, reports, and detection of passes that misreport or break the graph.
#include "transforms/pipeline/pipeline.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace permafrost {
namespace {

// x -> i -> y, an Identity between a placeholder and the output.
std::unique_ptr<Graph> Chain() {
  auto graph = std::make_unique<Graph>();
  Node* x = *graph->AddNode("x", ops::kPlaceholder);
  x->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  x->SetAttr("shape", AttrValue::OfShape({2}));
  Node* i = *graph->AddNode("i", ops::kIdentity);
  i->SetAttr("T", AttrValue::Type(DType::kFloat));
  graph->AddInput(i, {x, 0});
  Node* y = *graph->AddNode("y", ops::kRelu);
  y->SetAttr("T", AttrValue::Type(DType::kFloat));
  graph->AddInput(y, {i, 0});
  EXPECT_TRUE(graph->DeclareInterface({"x"}, {"y"}).ok());
  return graph;
}

absl::StatusOr<int64_t> SayNothing(Graph* graph, const NoParams&, PassContext*) {
  graph->Find("y")->set_device("/CPU:0");
  return 0;
}
absl::StatusOr<int64_t> SayTooMuch(Graph*, const NoParams&, PassContext*) { return 1; }
absl::StatusOr<int64_t> BreakArity(Graph* graph, const NoParams&, PassContext*) {
  graph->ClearInputs(graph->Find("y"));
  return 1;
}
absl::StatusOr<int64_t> BreakShape(Graph* graph, const NoParams&, PassContext*) {
  graph->Find("x")->SetAttr("shape", AttrValue::Int(1));
  return 1;
}
absl::StatusOr<int64_t> RenameOutput(Graph* graph, const NoParams&, PassContext*) {
  if (absl::Status status = graph->Rename(graph->Find("y"), "z"); !status.ok()) return status;
  return 1;
}
absl::StatusOr<int64_t> EditAndFail(Graph* graph, const NoParams&, PassContext*) {
  graph->Find("y")->set_device("/CPU:0");
  return absl::FailedPreconditionError("cannot");
}

const std::vector<PassDefinition>& OwnPasses() {
  static const auto* const passes = [] {
    auto* made = new std::vector<PassDefinition>;
    const auto add = [&](const char* name, auto function) {
      made->push_back(Pass<NoParams>("A pass.").Run(function));
      made->back().name = name;
    };
    add("say_nothing", SayNothing);
    add("say_too_much", SayTooMuch);
    add("break_arity", BreakArity);
    add("break_shape", BreakShape);
    add("rename_output", RenameOutput);
    add("edit_and_fail", EditAndFail);
    return made;
  }();
  return *passes;
}

absl::StatusOr<const PassDefinition*> FindOwnPass(absl::string_view name) {
  for (const PassDefinition& pass : OwnPasses()) {
    if (pass.name == name) return &pass;
  }
  return FindPass(name);
}

// Returns `count` nodes in a chain, enough for checks to run on several threads.
std::unique_ptr<Graph> LongChain(int count = 1000) {
  std::unique_ptr<Graph> graph = Chain();
  Node* last = graph->Find("y");
  for (int i = 0; i < count; ++i) {
    Node* node = *graph->AddNode(absl::StrCat("relu", i), ops::kRelu);
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph->AddInput(node, {last, 0});
    last = node;
  }
  return graph;
}

absl::StatusOr<std::vector<PassReport>> RunText(absl::string_view text, std::unique_ptr<Graph>* graph,
                                                PipelineOptions options = {}, int num_threads = 1) {
  const absl::StatusOr<std::vector<PassCall>> calls = ParsePipeline(text);
  if (!calls.ok()) return calls.status();
  PassContext context;
  context.num_threads = num_threads;
  options.find_pass = FindOwnPass;
  return RunPipeline(graph, *calls, &context, options);
}

std::string InternalError(absl::string_view text) {
  std::unique_ptr<Graph> graph = Chain();
  const absl::Status status = RunText(text, &graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  return std::string(status.message());
}

TEST(Pipeline, FindsOutPassesThatMisreport) {
  EXPECT_EQ(InternalError("say_nothing"), "say_nothing: reports 0 rewrites, but the graph is changed");
  EXPECT_EQ(InternalError("say_too_much"), "say_too_much: reports 1 rewrites, but the graph is unchanged");
}

TEST(Pipeline, FindsOutPassesThatBreakTheGraph) {
  const std::string message = InternalError("break_arity");
  EXPECT_TRUE(absl::StartsWith(message, "break_arity: leaves a graph that is not valid: ")) << message;
  EXPECT_EQ(InternalError("rename_output"), "rename_output: changes the declared inputs or outputs");
}

TEST(Pipeline, FindsOutTheSameOnSeveralThreads) {
  for (const char* pass : {"say_nothing", "say_too_much", "break_arity", "break_shape", "rename_output"}) {
    std::unique_ptr<Graph> one = LongChain(), several = LongChain();
    const absl::Status expected = RunText(pass, &one).status();
    EXPECT_EQ(expected.code(), absl::StatusCode::kInternal) << pass;
    EXPECT_EQ(RunText(pass, &several, {}, /*num_threads=*/4).status(), expected) << pass;
  }
  std::unique_ptr<Graph> graph = LongChain();
  const auto reports = RunText("remove_nodes(op=Identity) sort_by_execution_order", &graph, {}, /*num_threads=*/4);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_EQ((*reports)[0].rewrites, 1);
  graph->ClearInputs(graph->Find("y"));
  const auto unchecked = RunText("rename_op(old_op_name=Relu, new_op_name=Relu6)", &graph, {}, /*num_threads=*/4);
  ASSERT_TRUE(unchecked.ok()) << unchecked.status();
  EXPECT_TRUE(absl::StrContains((*unchecked)[0].notes[0], "does not pass the checks")) << (*unchecked)[0].notes[0];
}

TEST(Pipeline, UndoesAFailedPassThatMayFail) {
  std::unique_ptr<Graph> graph = Chain();
  const auto reports = RunText("edit_and_fail(ignore_errors=true) remove_nodes(op=Identity)", &graph);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_EQ((*reports)[0].ignored_error, "cannot");
  EXPECT_EQ((*reports)[0].rewrites, 0);
  EXPECT_EQ((*reports)[1].rewrites, 1);
  EXPECT_EQ(graph->Find("y")->device(), "");
}

TEST(Pipeline, NamesThePassThatFails) {
  std::unique_ptr<Graph> graph = Chain();
  const absl::Status status = RunText("sort_by_execution_order edit_and_fail", &graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "edit_and_fail: cannot");
}

TEST(Pipeline, ChecksAllCallsBeforeTheFirstRuns) {
  std::unique_ptr<Graph> graph = Chain();
  EXPECT_FALSE(RunText("remove_nodes(op=Identity) no_such_pass", &graph).ok());
  EXPECT_FALSE(RunText("remove_nodes(op=Identity) remove_nodes(op=Identity, max_input=2)", &graph).ok());
  EXPECT_FALSE(RunText("remove_nodes(op=Identity) remove_nodes(ignore_errors=true)", &graph).ok());
  EXPECT_EQ(graph->num_nodes(), 3);
}

TEST(Pipeline, ReportsWhatEachPassDid) {
  std::unique_ptr<Graph> graph = Chain();
  std::vector<std::string> seen;
  PipelineOptions options;
  options.measure_bytes = [](const Graph& g) { return uint64_t{10} * g.num_nodes(); };
  options.before_pass = [&](size_t index, const PassCall& call) {
    seen.push_back(absl::StrCat(index, " ", call.name));
  };
  options.after_pass = [&](size_t index, const PassReport& report, const Graph& g) {
    seen.push_back(absl::StrCat(index, " ", report.rewrites, " ", g.num_nodes()));
    return absl::OkStatus();
  };
  const auto reports = RunText("sort_by_execution_order remove_nodes(op=Identity)", &graph, options);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_EQ(seen, (std::vector<std::string>{"0 sort_by_execution_order", "0 0 3", "1 remove_nodes", "1 1 2"}));
  EXPECT_EQ((*reports)[1].call, R"(remove_nodes(op="Identity"))");
  EXPECT_EQ((*reports)[1].nodes_before, 3);
  EXPECT_EQ((*reports)[1].nodes_after, 2);
  EXPECT_EQ((*reports)[1].bytes_before, 30);
  EXPECT_EQ((*reports)[1].bytes_after, 20);
}

TEST(Pipeline, StopsWhereAnObserverSaysSo) {
  std::unique_ptr<Graph> graph = Chain();
  PipelineOptions options;
  options.after_pass = [](size_t, const PassReport&, const Graph&) { return absl::AbortedError("enough"); };
  EXPECT_EQ(RunText("sort_by_execution_order remove_nodes(op=Identity)", &graph, options).status().message(), "enough");
  EXPECT_EQ(graph->num_nodes(), 3);
}

TEST(Pipeline, SaysWhenTheGraphWasNotValidToBeginWith) {
  std::unique_ptr<Graph> graph = Chain();
  graph->ClearInputs(graph->Find("y"));
  const auto reports = RunText("remove_nodes(op=Identity)", &graph);
  ASSERT_TRUE(reports.ok()) << reports.status();
  ASSERT_FALSE((*reports)[0].notes.empty());
  EXPECT_TRUE(absl::StrContains((*reports)[0].notes[0], "does not pass the checks")) << (*reports)[0].notes[0];
}

}  // namespace
}  // namespace permafrost
