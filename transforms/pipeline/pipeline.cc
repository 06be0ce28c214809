// Runs passes and verifies the properties that each declares.
#include "transforms/pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/all_errors.h"
#include "graph/base/status.h"
#include "graph/shapes/shape_inference.h"
#include "graph/validation/hash.h"
#include "graph/validation/validate.h"
#include "transforms/pipeline/presets.h"
#include "transforms/pipeline/thread_team.h"

namespace permafrost {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Below this number of nodes threads cost more than they save.
constexpr size_t kNodesForOneThread = 200;

// Checks every property of a graph that may be written; `besides` runs concurrently.
absl::Status CheckGraph(const Graph& graph, ThreadTeam* team, const std::function<void()>& besides) {
  if (team->num_threads() == 1 || graph.num_nodes() < kNodesForOneThread) {
    besides();
    PF_RETURN_IF_ERROR(Validate(graph));
    return InferShapes(graph).status();
  }
  absl::Status rest, shapes;
  const std::function<void()> tasks[] = {[&] { shapes = InferShapes(graph).status(); }, [&] { rest = Validate(graph); },
                                         besides};
  team->ForEach(std::size(tasks), [&](size_t i) { tasks[i](); });
  // The validator's message is closer to the cause.
  return rest.ok() ? shapes : rest;
}

// Returns the declared interface as text, to detect a pass that changes it without declaring so.
std::string InterfaceOf(const Graph& graph) {
  std::string text;
  for (const auto* endpoints : {&graph.inputs(), &graph.outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      absl::StrAppend(&text, endpoint.text, endpoint.node == nullptr ? "?" : "", ",");
    }
    absl::StrAppend(&text, ";");
  }
  return text;
}

// Adds a note if a pass made no rewrite although its ops occur in the graph.
void NoteThatNothingMatched(const PassDefinition& pass, const Graph& graph, PassContext* context) {
  if (pass.ops.empty() && context->num_misses == 0) return;
  std::map<absl::string_view, int64_t> present;
  for (const Node* node = graph.first(); node != nullptr && !pass.ops.empty(); node = node->next()) {
    if (std::find(pass.ops.begin(), pass.ops.end(), node->op()) != pass.ops.end()) ++present[node->op().name()];
  }
  std::string text;
  for (const auto& [op, count] : present) absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", op);
  if (text.empty()) {
    if (context->num_misses == 0) return;
    text = absl::StrCat(context->num_misses, context->num_misses == 1 ? " place" : " places", " came close");
  }
  context->Note(absl::StrCat("never matched: ", text, context->wants_misses ? "" : "; --explain says why"));
}

// Appends the errors in the arguments of a call: that of all arguments together, and those of each name alone.
void AddArgumentErrors(const PassDefinition& pass, const PassCall& call, std::vector<absl::Status>* errors) {
  const absl::Status status = pass.check_arguments(call.arguments);
  if (status.ok()) return;
  std::vector<absl::Status> found = {status};
  for (const PassArgument& argument : call.arguments) {
    std::vector<PassArgument> alone;
    for (const PassArgument& other : call.arguments) {
      if (other.name == argument.name) alone.push_back(other);
    }
    absl::Status error = pass.check_arguments(alone);
    // Alone, the argument also lacks the required ones.
    const bool is_about_it = absl::StrContains(error.message(), absl::StrCat("'", argument.name, "'"));
    if (is_about_it && std::find(found.begin(), found.end(), error) == found.end()) found.push_back(std::move(error));
  }
  for (const absl::Status& error : found) errors->push_back(Annotate(error, call.name));
}

// Returns the definitions of the calls after checking their arguments. Appends the errors to *errors, and leaves out
// passes that do not exist.
template <typename Find>
std::vector<const PassDefinition*> FindPasses(absl::Span<const PassCall> calls, const Find& find,
                                              std::vector<absl::Status>* errors) {
  std::vector<const PassDefinition*> passes;
  for (const PassCall& call : calls) {
    const absl::StatusOr<const PassDefinition*> pass = find(call.name);
    if (!pass.ok()) {
      errors->push_back(pass.status());
      continue;
    }
    AddArgumentErrors(**pass, call, errors);
    passes.push_back(*pass);
  }
  return passes;
}

}  // namespace

std::string PassCall::ToString() const {
  if (arguments.empty() && !ignore_errors) return name;
  std::string text;
  for (const PassArgument& argument : arguments) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", argument.name, "=\"", argument.value, "\"");
  }
  if (ignore_errors) absl::StrAppend(&text, text.empty() ? "" : ", ", "ignore_errors=\"true\"");
  return absl::StrCat(name, "(", text, ")");
}

absl::StatusOr<std::vector<PassCall>> ParseTransforms(absl::string_view text) {
  ScannedPipeline scanned = ScanPipeline(text);
  std::vector<absl::Status> errors = std::move(scanned.errors);
  for (absl::Status& error : errors) {
    // The wording of TensorFlow's tool.
    error = Annotate(error, "Failed to parse --transform argument, error was");
  }
  absl::StatusOr<std::vector<PassCall>> calls = ExpandPresets(scanned.calls);
  if (calls.ok()) {
    (void)FindPasses(*calls, FindPass, &errors);
  } else {
    errors.push_back(calls.status());
  }
  PF_RETURN_IF_ERROR(AllErrors(errors));
  return calls;
}

absl::Status CheckPipeline(absl::Span<const PassCall> calls) {
  std::vector<absl::Status> errors;
  (void)FindPasses(calls, FindPass, &errors);
  return AllErrors(errors);
}

absl::StatusOr<std::vector<PassReport>> RunPipeline(std::unique_ptr<Graph>* graph, absl::Span<const PassCall> calls,
                                                    PassContext* context, const PipelineOptions& options) {
  std::vector<absl::Status> errors;
  const std::vector<const PassDefinition*> passes =
      options.find_pass ? FindPasses(calls, options.find_pass, &errors) : FindPasses(calls, FindPass, &errors);
  PF_RETURN_IF_ERROR(AllErrors(errors));
  const auto measure = [&] { return options.measure_bytes ? options.measure_bytes(**graph) : 0; };
  ThreadTeam team(context->num_threads);
  GraphHashes hashes;
  const absl::Status initial = CheckGraph(**graph, &team, [&] { hashes = HashGraph(**graph); });
  std::vector<PassReport> reports;
  uint64_t bytes = measure();
  for (size_t index = 0; index < calls.size(); ++index) {
    const PassCall& call = calls[index];
    const PassDefinition* pass = passes[index];
    if (options.before_pass) options.before_pass(index, call);
    PassReport report;
    report.call = call.ToString();
    report.name = call.name;
    report.nodes_before = (*graph)->num_nodes();
    report.bytes_before = bytes;
    std::unique_ptr<Graph> undo;
    if (call.ignore_errors) undo = (*graph)->Clone();
    const std::string interface = InterfaceOf(**graph);
    context->notes.clear();
    context->misses.clear();
    context->num_misses = 0;
    context->num_rewrites_asked = 0;
    context->wants_absent = !call.is_of_preset || context->wants_misses;
    if (index == 0 && !initial.ok()) {
      context->Note(
          absl::StrCat("the graph does not pass the checks, so none are made after passes: ", initial.message()));
    }
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<int64_t> rewrites = pass->run(graph->get(), call.arguments, context);
    report.seconds = SecondsSince(start);
    if (rewrites.ok()) {
      const GraphHashes before = hashes;
      hashes = HashGraph(**graph);
      const bool is_changed = hashes.structural != before.structural;
      if ((*rewrites > 0) != is_changed) {
        return absl::InternalError(absl::StrCat(call.name, ": reports ", *rewrites, " rewrites, but the graph is ",
                                                is_changed ? "changed" : "unchanged"));
      }
      // Changes of names, devices or order alone do not make a valid graph invalid.
      if (initial.ok() && hashes.meaning != before.meaning) {
        if (absl::Status status = CheckGraph(**graph, &team, [] {}); !status.ok()) {
          if (!pass->may_invalidate) {
            return absl::InternalError(
                absl::StrCat(call.name, ": leaves a graph that is not valid: ", status.message()));
          }
          rewrites =
              absl::InvalidArgumentError(absl::StrCat("the graph would not be valid any more: ", status.message()));
        }
      }
    }
    if (!rewrites.ok()) {
      if (!call.ignore_errors) return Annotate(rewrites.status(), call.name);
      report.ignored_error = std::string(rewrites.status().message());
      *graph = std::move(undo);
      hashes = HashGraph(**graph);
    } else {
      report.rewrites = *rewrites;
      if (*rewrites == 0 && context->wants_absent) {
        NoteThatNothingMatched(*pass, **graph, context);
      }
      if (pass->interface_change.empty() && InterfaceOf(**graph) != interface) {
        return absl::InternalError(absl::StrCat(call.name, ": changes the declared inputs or outputs"));
      }
      if (*rewrites > 0) bytes = measure();
    }
    report.nodes_after = (*graph)->num_nodes();
    report.bytes_after = bytes;
    report.rewrites_asked = context->num_rewrites_asked;
    report.notes = std::move(context->notes);
    report.misses = std::move(context->misses);
    if (options.after_pass) PF_RETURN_IF_ERROR(options.after_pass(index, report, **graph));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace permafrost
