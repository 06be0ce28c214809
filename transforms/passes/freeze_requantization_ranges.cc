// Replaces ranges measured at run time by constants from the log of earlier runs.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/eight_bit.h"
#include "transforms/rewrites/range_log.h"

namespace permafrost {
namespace {

struct Params {
  std::string min_max_log_file;
  float min_percentile = 5;
  float max_percentile = 5;
};

constexpr float kPercent = 100.0f;

// Returns the minimum below which `min_percentile` percent of the minima lie, and the maximum above which
// `max_percentile` percent of the maxima lie, rounded as in TensorFlow. With ten records and five percent these are the
// second smallest minimum and the largest maximum.
FloatBounds Choose(RangeRecords records, const Params& params) {
  std::sort(records.mins.begin(), records.mins.end());
  std::sort(records.maxes.begin(), records.maxes.end());
  const float count = static_cast<float>(records.mins.size());
  const auto at = [](const std::vector<float>& sorted, float position) {
    const float last = static_cast<float>(sorted.size() - 1);
    return sorted[static_cast<size_t>(std::clamp(std::round(position), 0.0f, last))];
  };
  return {at(records.mins, count * (params.min_percentile / kPercent)),
          at(records.maxes, count * (1.0f - params.max_percentile / kPercent))};
}

// Replaces control inputs from `node` by control inputs from the inputs of `node`.
void HandControlsOn(Graph* graph, Node* node) {
  std::vector<Node*> waited_for;
  for (int i = 0; i < node->num_inputs(); ++i) waited_for.push_back(node->input(i).node);
  std::vector<Node*> waiting;
  for (const Use& use : node->uses()) {
    if (use.consumer->input(use.index).is_control()) waiting.push_back(use.consumer);
  }
  for (Node* consumer : waiting) {
    for (int i = consumer->num_inputs() - 1; i >= consumer->num_data_inputs(); --i) {
      if (consumer->input(i).node == node) graph->RemoveInput(consumer, i);
    }
    for (Node* producer : waited_for) {
      if (producer != consumer) graph->AddControlInput(consumer, producer);
    }
  }
}

absl::Status Freeze(Graph* graph, Node* node, const FloatBounds& range, bool has_loops) {
  const auto add = [&](absl::string_view suffix, float value) {
    Node* wait_for = has_loops && node->num_inputs() > 0 ? node->input(0).node : nullptr;
    return AddScalarAt(graph, absl::StrCat(node->name(), suffix), value, node, wait_for);
  };
  PF_ASSIGN_OR_RETURN(Node * min, add("/frozen_min", range.min));
  PF_ASSIGN_OR_RETURN(Node * max, add("/frozen_max", range.max));
  graph->ReplaceUses({node, 0}, {min, 0});
  graph->ReplaceUses({node, 1}, {max, 0});
  HandControlsOn(graph, node);
  return graph->IsEndpoint(node) ? absl::OkStatus() : graph->RemoveNode(node);
}

// Returns the nodes of the log. Returns InvalidArgument with those that the graph does not have or that have another
// op.
absl::StatusOr<std::vector<Node*>> FindNodes(const Graph& graph, const RangeLog& log) {
  constexpr size_t kMostNamed = 5;
  std::vector<Node*> found;
  std::vector<std::string> missing;
  for (const auto& [name, records] : log.nodes) {
    Node* node = graph.Find(name);
    if (node == nullptr) {
      missing.push_back(name);
    } else if (node->op() != ops::kRequantizationRange) {
      return absl::InvalidArgumentError(
          absl::StrCat("Node is expected to be a RequantizationRange op: ", name, ", but is: ", node->op().name()));
    }
    found.push_back(node);
  }
  if (missing.empty()) return found;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i) {
    absl::StrAppend(&names, i == 0 ? "'" : ", '", missing[i], "'");
  }
  if (missing.size() > kMostNamed) absl::StrAppend(&names, " and ", missing.size() - kMostNamed, " more");
  return absl::InvalidArgumentError(
      absl::StrCat("Nodes were found in the log file that aren't present in the graph: ", names,
                   "; the log is of another model, or of this one before its nodes were renamed"));
}

void NoteSkipped(const RangeLog& log, PassContext* context) {
  if (log.num_malformed > 0) {
    context->Note(
        absl::StrCat("skipped ", log.num_malformed, " malformed records; the first is in ", log.first_malformed));
  }
  if (log.num_unusable > 0) {
    context->Note(absl::StrCat("skipped ", log.num_unusable,
                               " records with NaN, an infinity or a minimum above the maximum; the first is in ",
                               log.first_unusable));
  }
}

absl::StatusOr<int64_t> FreezeAll(Graph* graph, const Params& params, PassContext* context) {
  if (params.min_max_log_file.empty()) {
    return absl::InvalidArgumentError("You must pass a file name to min_max_log_file");
  }
  if (!context->read_file) return absl::FailedPreconditionError("there is nothing to read files with");
  PF_ASSIGN_OR_RETURN(const std::string text, context->read_file(params.min_max_log_file));
  const RangeLog log = ParseRangeLog(text);
  NoteSkipped(log, context);
  if (log.num_records == 0) {
    std::string seen;
    if (log.num_malformed > 0) absl::StrAppend(&seen, ", malformed in ", log.first_malformed);
    if (log.num_unusable > 0) absl::StrAppend(&seen, ", unusable in ", log.first_unusable);
    return absl::InvalidArgumentError(absl::StrCat("No min/max range logs were found in the log file '",
                                                   params.min_max_log_file, "'", seen,
                                                   "; expected lines like "
                                                   "';<node>__print__;__requant_min_max:[<min>][<max>]'"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> nodes, FindNodes(*graph, log));
  std::vector<FloatBounds> ranges;
  for (const auto& [name, records] : log.nodes) {
    ranges.push_back(Choose(records, params));
    if (ranges.back().min > ranges.back().max) {
      return absl::InvalidArgumentError(absl::StrCat("node '", name, "': the percentiles ", params.min_percentile,
                                                     " and ", params.max_percentile, " leave the minimum ",
                                                     ranges.back().min, " above the maximum ", ranges.back().max));
    }
  }
  const bool has_loops = HasLoops(*graph);
  int64_t frozen = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const RewriteScope rewrite(context, graph, {nodes[i]});
    if (!rewrite) break;
    PF_RETURN_IF_ERROR(Freeze(graph, nodes[i], ranges[i], has_loops));
    ++frozen;
  }

  int64_t left = 0;
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kRequantizationRange) continue;
    ++left;
    context->MissIfWanted(*node, "is not in the log");
  }
  context->Note(absl::StrCat("froze ", frozen, " ranges from ", log.num_records, " records; ", left,
                             " are still found at each run"));
  return frozen;
}

}  // namespace

// Replaces each RequantizationRange by the range recorded in a log of earlier runs. insert_logging produces the log.
// Each record is a line that contains `;<node>__print__;__requant_min_max:[<min>][<max>]`.
//
//   Requantize(x, RequantizationRange r (x))   =>   Requantize(x, Const r/frozen_min, Const r/frozen_max)
//
// Leaves nodes unchanged that the log does not mention. Skips records that are malformed or hold NaN, an infinity, or a
// minimum above the maximum, and reports them in a note. It is an error if there is no valid record, if a logged node
// is absent or has another op, or if the percentiles leave an empty range.
DEFINE_PASS(freeze_requantization_ranges) {
  return Pass<Params>("Replaces ranges that are computed in each run by constants taken from a log.")
      .Why("Computing a range reads all values of a tensor in every run; a recorded range has no run-time cost.")
      .LooksFor({ops::kRequantizationRange})
      .Param("min_max_log_file", &Params::min_max_log_file, "Path of the log.", Required())
      .Param("min_percentile", &Params::min_percentile,
             "Percentage of the recorded minima that may lie below the range.", Between(0, 100))
      .Param("max_percentile", &Params::max_percentile,
             "Percentage of the recorded maxima that may lie above the range.", Between(0, 100))
      .Numerics(Changes("results are clamped to the ranges in the log"))
      .Run(FreezeAll);
}

}  // namespace permafrost
