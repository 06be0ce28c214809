// Judges the graph after each pass, then after some of the rewrites of the faulty pass.
#include "tools/transform/bisection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/command_line/console.h"
#include "tools/transform/rewrite_surroundings.h"

namespace permafrost {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// One state of the graph, and its judgement.
struct State {
  std::unique_ptr<Graph> graph;
  BisectionProbe probe;
  std::vector<VerifiedOutput> outputs;
  std::vector<std::string> last_rewrite;
  int64_t num_asked = 0;
};

class Search {
 public:
  Search(absl::Span<const PassCall> calls, const Verifier& verifier, const BisectionOptions& options)
      : calls_(calls), verifier_(verifier), options_(options) {}

  absl::StatusOr<Bisection> Run(const Graph& graph) {
    for (const PassCall& call : calls_) {
      PF_ASSIGN_OR_RETURN(const PassDefinition* pass,
                          options_.find_pass ? options_.find_pass(call.name) : FindPass(call.name));
      PF_RETURN_IF_ERROR(Annotate(pass->check_arguments(call.arguments), call.name));
    }
    std::unique_ptr<Graph> before = graph.Clone();
    for (size_t index = 0; index < calls_.size(); ++index) {
      State after = Try(*before, index, kNoLimit);
      if (after.probe.is_good) {
        if (!unverified_.empty()) break;
        before = std::move(after.graph);
        continue;
      }
      found_.pass_index = index;
      found_.pass = calls_[index].name;
      found_.call = calls_[index].ToString();
      found_.allowed = AllowanceAfter(index).why;
      FindRewrite(*before, index, std::move(after));
      return std::move(found_);
    }
    found_.why_not = unverified_;
    if (!unverified_.empty()) found_.result = Bisection::Result::kNotVerified;
    return std::move(found_);
  }

 private:
  Allowance AllowanceAfter(size_t index) const {
    if (!options_.tolerance.has_value()) return DeclaredAllowance(calls_.subspan(0, index + 1));
    return {*options_.tolerance, false, absl::StrCat(FormatNumber(*options_.tolerance), " (--tolerance)")};
  }

  // Runs one pass with a limit on a copy of `before` and judges the result.
  State Try(const Graph& before, size_t index, int64_t limit) {
    if (options_.progress) {
      options_.progress(absl::StrCat("[", index + 1, "/", calls_.size(), "] ", calls_[index].name,
                                     limit == kNoLimit ? "" : absl::StrCat(", ", limit, " rewrites")));
    }
    State state;
    state.probe.pass = calls_[index].name;
    PassContext context = options_.context;
    context.wants_misses = false;
    context.rewrite_limit = limit;
    PipelineOptions pipeline;
    pipeline.find_pass = options_.find_pass;
    state.graph = before.Clone();
    const auto reports = RunPipeline(&state.graph, calls_.subspan(index, 1), &context, pipeline);
    state.num_asked = context.num_rewrites_asked;
    state.probe.rewrites = limit == kNoLimit ? state.num_asked : limit;
    state.last_rewrite = std::move(context.last_rewrite);
    if (reports.ok()) {
      Judge(AllowanceAfter(index), &state);
    } else {
      state.probe.error = std::numeric_limits<double>::infinity();
      state.probe.failure = std::string(reports.status().message());
    }
    found_.probes.push_back(state.probe);
    return state;
  }

  void Judge(const Allowance& allowance, State* state) {
    const absl::StatusOr<Verdict> verdict = verifier_.Check(*state->graph);
    if (!verdict.ok()) {
      state->probe.error = std::numeric_limits<double>::infinity();
      state->probe.failure = std::string(verdict.status().message());
      return;
    }
    if (!verdict->was_run) unverified_ = verdict->why_not;
    state->probe.error = verdict->worst();
    state->probe.is_good = verdict->Passes(allowance);
    state->outputs = verdict->outputs;
  }

  // `bad` is the state after all rewrites of the pass on `before`.
  void FindRewrite(const Graph& before, size_t index, State bad) {
    const int64_t total = bad.num_asked;
    found_.num_rewrites = total;
    State good;
    // A pass that does not check the limit makes its one step at any limit, so it is not run again.
    if (total > 0) good = Try(before, index, 0);
    if (!good.probe.is_good) {
      found_.result = Bisection::Result::kPassBreaks;
      good.graph = before.Clone();
      good.probe.error = 0;
      if (const absl::StatusOr<Verdict> verdict = verifier_.Check(before); verdict.ok()) {
        good.probe.error = verdict->worst();
      }
      bad.last_rewrite.clear();
    } else {
      int64_t low = 0, high = total;
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        State state = Try(before, index, middle);
        const bool is_good = state.probe.is_good;
        (is_good ? low : high) = middle;
        (is_good ? good : bad) = std::move(state);
      }
      // The run without a limit did not record its last rewrite.
      if (bad.last_rewrite.empty()) bad = Try(before, index, high);
      found_.result = Bisection::Result::kRewriteBreaks;
      found_.rewrite = high;
    }
    found_.nodes = bad.last_rewrite;
    found_.error_before = good.probe.error;
    found_.error_after = bad.probe.error;
    found_.failure = bad.probe.failure;
    found_.differences = CompareGraphs(*bad.graph, *good.graph, {});
    found_.num_differences = found_.differences.size();
    if (found_.differences.size() > kMostDifferences) found_.differences.resize(kMostDifferences);
    found_.nearby = NodesNear(*good.graph, *bad.graph, found_.nodes, found_.differences);
    found_.values = ChangedValues(*good.graph, *bad.graph, found_.nodes, verifier_);
  }

  absl::Span<const PassCall> calls_;
  const Verifier& verifier_;
  const BisectionOptions& options_;
  std::string unverified_;
  Bisection found_;
};

}  // namespace

absl::StatusOr<Bisection> Bisect(const Graph& graph, absl::Span<const PassCall> calls, const Verifier& verifier,
                                 const BisectionOptions& options) {
  return Search(calls, verifier, options).Run(graph);
}

}  // namespace permafrost
