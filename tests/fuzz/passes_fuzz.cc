// Fuzz target: bytes as choices of a graph grammar and of a pipeline of passes. A pass must keep the graph valid, and
// do what its definition claims: outputs stay the same within the declared tolerance.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/wire.h"
#include "graph/validation/validate.h"
#include "io/formats/graphdef_text.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/session.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/finding.h"
#include "tests/fuzz/graph_grammar.h"
#include "transforms/pass.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {
namespace {

constexpr int64_t kMemoryLimit = 16 << 20;

// Exact for the ops that it is meant for, and changes numbers for others.
constexpr absl::string_view kAsAskedFor = "remove_nodes";

// Draws a value for a parameter: usable, absurd, or of the graph.
std::string DrawArgument(const ParamSpec& param, const Graph& graph, Choices* choices) {
  if (param.type == "bool") return choices->OneIn(2) ? "true" : "false";
  if (param.type == "int32" || param.type == "int64") {
    static constexpr const char* kNumbers[] = {"0", "1", "2", "8", "255", "-1", "1000000", "2147483647"};
    return choices->Of(kNumbers);
  }
  if (param.type == "float") {
    static constexpr const char* kNumbers[] = {"0", "1", "0.5", "-1", "1e30", "nan", "inf"};
    return choices->Of(kNumbers);
  }
  const std::vector<Node*> nodes = graph.Nodes();
  const Node* node = choices->Of(nodes);
  static constexpr const char* kTexts[] = {"", "float", "int32", "x", "2,3", "NHWC", "*"};
  switch (choices->Below(3)) {
    case 0:
      return std::string(node->name());
    case 1:
      return std::string(node->op().name());
    default:
      return choices->Of(kTexts);
  }
}

absl::StatusOr<std::vector<Tensor>> RunOutputs(const Graph& graph, const DrawnGraph& drawn) {
  SessionOptions options;
  options.memory_limit = kMemoryLimit;
  options.loop_limits.most_iterations = 100;
  options.print = [](absl::string_view, absl::string_view) {};
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(graph, drawn.inputs, drawn.outputs, options);
  if (!session.ok()) return session.status();
  return (*session)->Run(drawn.feeds);
}

// Returns whether rounding cannot explain a difference: the numbers are finite and of ordinary size.
bool AreOrdinary(const std::vector<Tensor>& outputs) {
  constexpr float kLargest = 1e5f;
  for (const Tensor& output : outputs) {
    if (output.dtype() != DType::kFloat) continue;
    const auto numbers = output.elements<float>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!(std::abs(numbers[i]) < kLargest)) return false;
    }
  }
  return true;
}

std::string TextOf(const Graph& graph) {
  StringSink sink;
  const absl::Status status = WriteGraphDefText(graph, &sink);
  return status.ok() ? sink.text() : status.ToString();
}

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Choices choices(bytes);
  PassContext context;
  const KernelEvaluator evaluator(kMemoryLimit);
  context.evaluator = &evaluator;
  context.wants_misses = choices.OneIn(2);
  if (choices.OneIn(4)) context.rewrite_limit = static_cast<int64_t>(choices.Below(3));
  // The pipeline comes first, so that a fuzzer can change the graph behind it.
  std::vector<const PassDefinition*> passes;
  for (size_t count = 1 + choices.Below(3); count > 0; --count) passes.push_back(&choices.Of(AllPasses()));
  const bool with_arguments = choices.OneIn(3);
  DrawnGraph drawn = DrawGraph(&choices);
  std::vector<PassCall> calls;
  bool may_change = false;
  for (const PassDefinition* pass : passes) {
    PassCall call;
    call.name = pass->name;
    for (const ParamSpec& param : pass->params) {
      if (!param.is_required && (!with_arguments || !choices.OneIn(2))) continue;
      call.arguments.push_back({param.name, DrawArgument(param, *drawn.graph, &choices)});
    }
    call.ignore_errors = choices.OneIn(8);
    may_change |= !pass->interface_change.empty() || pass->may_invalidate;
    calls.push_back(std::move(call));
  }
  const auto describe = [&](const std::string& what, const Graph& before) {
    const auto name = [](std::string* out, const PassCall& call) { absl::StrAppend(out, call.ToString()); };
    Fail(absl::StrCat(what, "\ntransforms: ", absl::StrJoin(calls, " ", name),
                      "\noutputs: ", absl::StrJoin(drawn.outputs, ","), "\n", TextOf(before)),
         bytes);
  };
  if (!CheckPipeline(calls).ok()) return 0;
  const std::unique_ptr<Graph> before = drawn.graph->Clone();
  if (!before->DeclareInterface(drawn.inputs, drawn.outputs).ok()) return 0;
  const bool was_valid = Validate(*before).ok();
  // A graph that fails may become one that is seen to fail: folding shows the values that do not fit. What a pass
  // reports of it is no finding.
  const absl::StatusOr<std::vector<Tensor>> expected = RunOutputs(*before, drawn);
  const absl::StatusOr<std::vector<PassReport>> reports = RunPipeline(&drawn.graph, calls, &context);
  if (!expected.ok()) return 0;
  if (absl::IsInternal(reports.status()) || absl::IsUnknown(reports.status())) {
    describe(reports.status().ToString(), *before);
  }
  if (!reports.ok() || may_change) return 0;
  if (was_valid) {
    if (const absl::Status status = Validate(*drawn.graph); !status.ok()) describe(status.ToString(), *before);
  }
  const absl::StatusOr<std::vector<Tensor>> actual = RunOutputs(*drawn.graph, drawn);
  double tolerance = 0;
  bool is_compared = true;
  for (const PassDefinition* pass : passes) {
    is_compared &= pass->numerics.kind != Numerics::Kind::kChanges && pass->name != kAsAskedFor;
    tolerance += pass->numerics.tolerance;
  }
  if (!is_compared) return 0;
  if (!actual.ok()) describe(absl::StrCat("the result fails: ", actual.status().ToString()), *before);
  if (!AreOrdinary(*expected)) return 0;
  for (size_t i = 0; i < expected->size(); ++i) {
    const OutputDifference difference = CompareTensors((*expected)[i], (*actual)[i]);
    const bool is_fine = tolerance > 0 ? difference.IsWithin(tolerance) : difference.is_identical();
    if (is_fine) continue;
    describe(absl::StrCat("output ", drawn.outputs[i], ": ", difference.ToString(), ", tolerance ", tolerance,
                          "\nafter:\n", TextOf(*drawn.graph), "\nbefore:"),
             *before);
  }
  return 0;
}
