// Runs golden cases and compares outputs.
#include "tests/transforms/golden_runs.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "io/file_system.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "runtime_check/checking/coded_feeds.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/checking/seeded_inputs.h"
#include "runtime_check/session.h"
#include "tools/transform/batch_matching.h"

namespace permafrost {
namespace {

// Seeds for numeric equivalence.
constexpr int kSeeds = 3;

std::vector<std::string> Texts(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.node != nullptr) texts.push_back(endpoint.text);
  }
  return texts;
}

absl::StatusOr<std::vector<Tensor>> RunGraph(const Graph& graph, absl::Span<const Tensor> feeds) {
  SessionOptions options;
  options.loop_limits.most_iterations = 1000;
  options.print = [](absl::string_view, absl::string_view) {};
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      Session::Create(graph, Texts(graph.inputs()), Texts(graph.outputs()), options));
  return session->Run(feeds);
}

// Returns the weakest numeric guarantee of the passes of a pipeline.
Numerics Promise(const std::string& run) {
  Numerics promise;
  const auto calls = ParsePipeline(run);
  for (const PassCall& call : *calls) {
    const Numerics& each = (*FindPass(call.name))->numerics;
    if (each.kind > promise.kind) promise.kind = each.kind;
    promise.tolerance += each.tolerance;
  }
  return promise;
}

bool Keeps(const Numerics& promise, const OutputDifference& difference) {
  switch (promise.kind) {
    case Numerics::Kind::kExact:
      return difference.is_identical();
    case Numerics::Kind::kWithin:
      return difference.IsWithin(promise.tolerance);
    case Numerics::Kind::kChanges:
      return difference.kind == OutputDifference::Kind::kComparable;
  }
  return false;
}

bool IsFedWith(DType type, const Endpoint& input) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(*input.node);
  return types.ok() && types->at(0) == type;
}

}  // namespace

absl::StatusOr<Outcome> RunOver(const std::string& run, std::unique_ptr<Graph> graph, int64_t rewrite_limit) {
  static const auto* const evaluator = new KernelEvaluator();
  PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls, ParsePipeline(run));
  PassContext context;
  context.evaluator = evaluator;
  context.wants_misses = true;
  context.read_file = [](absl::string_view path) { return ReadWhole(absl::StrCat(kGoldenFolder, "/", path)); };
  context.open_checkpoint = [](absl::string_view path) {
    return OpenCheckpoint(RealFileSystem(), absl::StrCat(kGoldenFolder, "/", path));
  };
  context.rewrite_limit = rewrite_limit;
  Outcome outcome;
  outcome.graph = std::move(graph);
  PF_ASSIGN_OR_RETURN(outcome.reports, RunPipeline(&outcome.graph, calls, &context));
  for (const PassReport& report : outcome.reports) outcome.rewrites += report.rewrites;
  return outcome;
}

absl::StatusOr<Outcome> RunCase(const GoldenCase& golden) {
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ReadGraphOf(golden));
  return RunOver(golden.run, std::move(graph));
}

namespace {

// Compares runs of graphs whose inputs have different batches. Returns nothing if they have the same ones.
absl::StatusOr<std::optional<std::vector<OutputDifference>>> CompareBatches(const GoldenCase& golden,
                                                                            const Graph& before, const Graph& after) {
  constexpr uint64_t kMostBytes = 1 << 20;
  std::vector<InputSet> sets;
  std::vector<std::vector<Tensor>> recorded;
  const std::vector<int64_t> batches = DeclaredBatches(before);
  if (batches == DeclaredBatches(after)) return std::nullopt;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    absl::StatusOr<std::vector<Tensor>> feeds = SeededInputs(before.inputs(), golden.shapes, seed);
    if (!feeds.ok()) return std::nullopt;  // An input that becomes a Placeholder of a known shape.
    sets.push_back(*std::move(feeds));
    PF_ASSIGN_OR_RETURN(recorded.emplace_back(), RunGraph(before, sets.back()));
  }
  PF_ASSIGN_OR_RETURN(const std::optional<BatchMatching> match, BatchMatching::Find(batches, after, sets, kMostBytes));
  if (!match.has_value()) return std::nullopt;
  PF_ASSIGN_OR_RETURN(const std::vector<InputSet> matched, match->Inputs());
  std::vector<OutputDifference> differences;
  for (size_t set = 0; set < matched.size(); ++set) {
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> found, RunGraph(after, matched[set]));
    for (size_t i = 0; i < found.size(); ++i) {
      PF_ASSIGN_OR_RETURN(const Tensor expected, match->Expected(recorded, set, i, found[i]));
      differences.push_back(CompareTensors(expected, found[i]));
    }
  }
  return differences;
}

}  // namespace

absl::Status CompareRuns(const GoldenCase& golden, const Graph& before, const Graph& after, bool* within,
                         std::string* worst, const Graph* finished) {
  *within = true;
  const Numerics promise = Promise(golden.run);
  PF_ASSIGN_OR_RETURN(const std::optional<std::vector<OutputDifference>> differences,
                      CompareBatches(golden, before, after));
  if (differences.has_value()) {
    for (const OutputDifference& difference : *differences) {
      if (Keeps(promise, difference)) continue;
      *within = false;
      *worst = difference.ToString();
    }
    return absl::OkStatus();
  }
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::vector<Endpoint> inputs;
    for (size_t i = 0; i < after.inputs().size(); ++i) {
      const Endpoint& input = after.inputs()[i];
      if (input.node == nullptr) continue;
      const bool is_cut_later = finished != nullptr && input.node->op() != ops::kPlaceholder;
      inputs.push_back(is_cut_later ? finished->inputs()[i] : input);
    }
    PF_ASSIGN_OR_RETURN(std::vector<Tensor> feeds, SeededInputs(inputs, golden.shapes, seed));
    std::vector<Tensor> feeds_before = feeds;
    for (size_t i = 0; i < feeds.size() && i < before.inputs().size(); ++i) {
      if (HasOtherMeaning(before.inputs()[i], inputs[i])) {
        PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(*before.inputs()[i].node, "dtype"));
        PF_ASSIGN_OR_RETURN(const Tensor feed, SeededTensor(type, feeds[i].shape(), seed));
        PF_ASSIGN_OR_RETURN(MatchedFeed matched, MatchFeed(before.inputs()[i], inputs[i], feed));
        feeds_before[i] = std::move(matched.before);
        feeds[i] = std::move(matched.after);
        continue;
      }
      // An input that takes codes after the passes is fed with the codes of its previous values.
      if (feeds[i].dtype() != DType::kQUint8 || IsFedWith(DType::kQUint8, before.inputs()[i])) continue;
      PF_ASSIGN_OR_RETURN(feeds_before[i], SeededTensor(DType::kFloat, feeds[i].shape(), seed));
      PF_ASSIGN_OR_RETURN(feeds[i], CodedFeed(inputs[i], feeds_before[i]));
    }
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, RunGraph(before, feeds_before));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> found, RunGraph(after, feeds));
    for (size_t i = 0; i < expected.size(); ++i) {
      const OutputDifference difference = CompareTensors(expected[i], found[i]);
      if (Keeps(promise, difference) && (golden.within < 0 || difference.IsWithin(golden.within))) continue;
      *within = false;
      *worst = absl::StrCat("output '", before.outputs()[i].text, "', seed ", seed, ": ", difference.ToString());
    }
  }
  return absl::OkStatus();
}

}  // namespace permafrost
