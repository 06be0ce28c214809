// Finds the rewrite that breaks the numbers: which pass of a pipeline first, then which of its rewrites.
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
  // Instead of what the passes up to the one in question declare.
  std::optional<double> tolerance;
  // What the passes need: evaluator, threads, files. Misses are not collected.
  PassContext context;
  // As PipelineOptions::find_pass; null: FindPass.
  std::function<absl::StatusOr<const PassDefinition*>(absl::string_view name)> find_pass;
  // One line on what is tried next. May be null.
  std::function<void(const std::string& line)> progress;
};

// One state that was tried: after all passes before the one at fault, and some of its rewrites.
struct BisectionProbe {
  std::string pass;
  int64_t rewrites = 0;  // Of the last pass; the number that it may make.
  bool is_good = false;
  double error = 0;     // The largest OutputDifference::relative().
  std::string failure;  // Empty, or why the graph does not run, or why the pass fails.
};

// A value before and after the rewrite at the place where it changed most.
struct ValueChange {
  std::string tensor;  // "y", "conv:1".
  bool is_output = false;
  std::string place;  // "[0,3]"; empty for a scalar.
  double before = 0;
  double after = 0;
  OutputDifference difference;
};

// A node near the rewrite, as text: "Conv2D(x, w)"; empty where the graph does not have it.
struct NearbyNode {
  std::string name;
  std::string before;
  std::string after;
  bool is_changed() const { return before != after; }
};

struct Bisection {
  enum class Result {
    kNothingBreaks,  // After every pass the outputs are within what is allowed.
    kNotVerified,    // The graph cannot be run: `why_not`.
    kPassBreaks,     // `pass` breaks the numbers, and has only one step, or breaks them beside its rewrites.
    kRewriteBreaks,  // Rewrite number `rewrite` of `pass` does.
  };
  Result result = Result::kNothingBreaks;
  std::string why_not;

  size_t pass_index = 0;  // In the pipeline, from 0.
  std::string pass;
  std::string call;
  std::string allowed;             // "exact", "within 1e-05".
  int64_t rewrite = 0;             // From 1.
  int64_t num_rewrites = 0;        // How many the pass would make.
  std::vector<std::string> nodes;  // What the rewrite matched, the most telling first. In the graph before it.
  double error_before = 0;         // Without the rewrite, and with it.
  double error_after = 0;
  std::string failure;  // When the graph does not run after it, or the pass fails: why.
  std::vector<ValueChange> values;
  std::vector<NearbyNode> nearby;
  std::vector<GraphDifference> differences;  // What the rewrite changed. At most kMostDifferences.
  size_t num_differences = 0;
  std::vector<BisectionProbe> probes;  // In the order in which they were made.
};

// More are counted, not listed.
inline constexpr size_t kMostDifferences = 40;

// Runs `calls` over copies of `graph`. `verifier` holds what it answered. The passes are judged one after the other, so
// the first that breaks the numbers is found; of its rewrites a binary search finds one that breaks what holds without
// it. Errors: calls that do not parse.
absl::StatusOr<Bisection> Bisect(const Graph& graph, absl::Span<const PassCall> calls, const Verifier& verifier,
                                 const BisectionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_BISECTION_H_
