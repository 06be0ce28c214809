// Measures the models in alternation, then profiles each.
#include "tools/report/model_runs.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/profiling/profiler.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/interleaved_runs.h"
#include "tools/measuring/node_costs.h"
#include "tools/measuring/timed_runs.h"

namespace permafrost {
namespace {

constexpr int kMostProfiledRuns = 20;

// Returns the graph's node of a profile row; null if there is none.
const Node* NodeOfLabel(const ProfileLabel& label, const Graph& graph) {
  if (!label.function.empty() || label.kind == ProfileLabel::Kind::kPartition) return nullptr;
  return graph.Find(label.kind == ProfileLabel::Kind::kPiece ? NodeOfPiece(label.name) : absl::string_view(label.name));
}

// Adds the profile. `summary` has one run.
void AddProfile(const ProfileSummary& summary, const Graph& graph, ModelFacts* facts) {
  absl::flat_hash_map<const Node*, size_t> place;
  for (size_t i = 0; i < facts->graph.nodes.size(); ++i) place[facts->graph.nodes[i].node] = i;
  absl::flat_hash_map<std::string, double> by_type;
  for (const ProfileRow& row : summary.Rows()) {
    const double seconds = row.total_us * 1e-6;
    facts->run->profiled_seconds += seconds;
    const Node* node = NodeOfLabel(row.label, graph);
    by_type[node != nullptr ? std::string(node->op().name()) : row.label.op] += seconds;
    const auto found = place.find(node);
    if (node == nullptr || found == place.end()) continue;
    std::optional<double>& sum = facts->graph.nodes[found->second].seconds;
    sum = sum.value_or(0) + seconds;
  }
  facts->run->seconds_by_type.assign(by_type.begin(), by_type.end());
  std::sort(facts->run->seconds_by_type.begin(), facts->run->seconds_by_type.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
}

absl::Status Profile(const RunToReport& run, double seconds) {
  Profiler profiler;
  SessionOptions options = run.options;
  options.profiler = &profiler;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, run.subject->NewSession(std::move(options)));
  const auto once = [&] { return session->Run(run.subject->feeds()).status(); };
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(run.subject->feeds()));
  for (std::string& note : NonFiniteNotes(run.subject->outputs(), outputs)) {
    run.facts->run->warnings.push_back(std::move(note));
  }
  const Graph& graph = run.subject->graph();
  const NodeCosts costs(graph, run.subject->fed_shapes());
  // A single run, so that its parts add up; the fastest one, since other programs disturbed it least.
  ProfileSummary fastest;
  int64_t least_ns = std::numeric_limits<int64_t>::max();
  profiler.set_recording(true);
  TimedRuns runs;
  PF_RETURN_IF_ERROR(RunTimed(
      {kMostProfiledRuns, 0, seconds, -1}, once,
      [&](const TimedRuns&) {
        const std::vector<ProfileRun> recorded = profiler.runs();
        if (!recorded.empty() && recorded.back().end_ns - recorded.back().start_ns < least_ns) {
          least_ns = recorded.back().end_ns - recorded.back().start_ns;
          fastest = ProfileSummary();
          fastest.Add(profiler);
          run.facts->run->memory = LivingBytes(profiler, recorded.back(), graph, costs);
        }
        profiler.Clear();
      },
      &runs));
  run.facts->run->arena_bytes = session->report().arena_bytes;
  if (fastest.num_runs() > 0) AddProfile(fastest, graph, run.facts);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureModels(absl::Span<const RunToReport> runs, double seconds, const Console& console) {
  std::vector<std::unique_ptr<Session>> sessions(runs.size());
  std::vector<Contestant> contestants;
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Session>> made = runs[i].subject->NewSession(runs[i].options);
    const absl::Status status = made.status();
    if (made.ok()) sessions[i] = *std::move(made);
    runs[i].facts->run.emplace();
    contestants.push_back({runs[i].facts->name, [&, i, status] {
                             if (sessions[i] == nullptr) return status;
                             return sessions[i]->Run(runs[i].subject->feeds()).status();
                           }});
  }
  ContestLimits limits;
  limits.max_seconds = seconds / 2;
  // Slow models stay in the report.
  limits.hopeless_ratio = 1e9;
  limits.max_rounds = 60;
  const std::vector<ContestResult> results = RunInterleaved(
      contestants, limits, [&](int round) { console.Progress(absl::StrCat("measuring: round ", round + 1)); });
  for (size_t i = 0; i < runs.size(); ++i) {
    RunFacts& facts = *runs[i].facts->run;
    if (!results[i].status.ok()) {
      facts.warnings.push_back(absl::StrCat("does not run: ", results[i].status.message()));
      continue;
    }
    facts.seconds = Sample(results[i].seconds);
    if (Interruption::IsRequested()) continue;
    console.Progress(absl::StrCat("profiling ", runs[i].facts->name));
    const absl::Status status = Profile(runs[i], seconds / 2 / static_cast<double>(runs.size()));
    if (!status.ok()) facts.notes.push_back(absl::StrCat("no profile: ", status.message()));
  }
  console.Progress("");
  return Interruption::IsRequested() ? absl::CancelledError("interrupted; no report was written") : absl::OkStatus();
}

}  // namespace permafrost
