// Finds the rewrite that makes outputs wrong: first the pass of the pipeline, then the rewrite of that pass.
#ifndef PERMAFROST_TOOLS_TRANSFORM_BISECTION_H_
#define PERMAFROST_TOOLS_TRANSFORM_BISECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "tools/difference/graph_difference.h"
#include "tools/transform/verification.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

struct BisectionOptions {
  // Replaces the tolerance declared by the passes up to the one under test.
  std::optional<double> tolerance;
  // Context of the passes: evaluator, threads, files. Near misses are not collected.
  PassContext context;
  // As PipelineOptions::find_pass; null: FindPass.
  std::function<absl::StatusOr<const PassDefinition*>(absl::string_view name)> find_pass;
  // Receives one line about the next trial. May be null.
  std::function<void(const std::string& line)> progress;
};

// One trial: the graph after all passes before the faulty one, and some of its rewrites.
struct BisectionProbe {
  std::string pass;
  int64_t rewrites = 0;  // Maximum number of rewrites of the last pass.
  bool is_good = false;
  double error = 0;     // The largest OutputDifference::relative().
  std::string failure;  // Empty, or the error of the pass or of running the graph.
};

// A value before and after the rewrite, at the position with the largest change.
struct ValueChange {
  std::string tensor;  // "y", "conv:1".
  bool is_output = false;
  std::vector<int64_t> index;  // Of the element; empty for a scalar.
  double before = 0;
  double after = 0;
  OutputDifference difference;
};

// A node near the rewrite, as text: "Conv2D(x, w)"; empty if the graph does not contain it.
struct NearbyNode {
  std::string name;
  std::string before;
  std::string after;
  bool is_changed() const { return before != after; }
};

// The result of a bisection.
struct Bisection {
  enum class Result {
    kNothingBreaks,  // The outputs are within the tolerance after every pass.
    kNotVerified,    // The graph cannot be run: see `why_not`.
    kPassBreaks,     // `pass` makes outputs wrong; it has one step only, or the error is outside its rewrites.
    kRewriteBreaks,  // Rewrite number `rewrite` of `pass` makes outputs wrong.
  };
  Result result = Result::kNothingBreaks;
  std::string why_not;

  size_t pass_index = 0;  // Index in the pipeline, from 0.
  std::string pass;
  std::string call;
  std::string allowed;             // "exact", "within 1e-05".
  int64_t rewrite = 0;             // From 1.
  int64_t num_rewrites = 0;        // Total number of rewrites of the pass.
  std::vector<std::string> nodes;  // Nodes that the rewrite matched, most relevant first. In the graph before it.
  double error_before = 0;         // Without the rewrite, and with it.
  double error_after = 0;
  std::string failure;  // The error if the graph does not run after the rewrite, or the pass fails.
  std::vector<ValueChange> values;
  std::vector<NearbyNode> nearby;
  std::vector<GraphDifference> differences;  // Values changed by the rewrite. At most kMostDifferences.
  size_t num_differences = 0;
  std::vector<BisectionProbe> probes;  // In the order of the trials.
};

// Further nodes are counted, not listed.
inline constexpr size_t kMostDifferences = 40;

// Runs `calls` on copies of `graph`. `verifier` holds the original outputs. Checks the passes in order, so that the
// first faulty one is found. A binary search then finds a rewrite of that pass that makes correct outputs wrong.
// Errors: calls that do not parse.
absl::StatusOr<Bisection> Bisect(const Graph& graph, absl::Span<const PassCall> calls, const Verifier& verifier,
                                 const BisectionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_BISECTION_H_
