// A transform string, and running it over a graph: the one way in which every tool runs passes.
#ifndef PERMAFROST_TRANSFORMS_PIPELINE_PIPELINE_H_
#define PERMAFROST_TRANSFORMS_PIPELINE_PIPELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// One call of a pass: `name(arguments)`.
struct PassCall {
  std::string name;
  std::vector<PassArgument> arguments;  // In order; repeated names stay. Without ignore_errors.
  bool ignore_errors = false;

  // As one would write it: `name(a="1", b="x y")`.
  std::string ToString() const;
};

// Reads the original's grammar: `name(arg=value, arg="a,b") name ...`, over several lines, commas between arguments
// optional, a backslash at the end of a line white space. Beyond it, blanks are welcome before "(", "," and ")" and
// round
// "=", and a transform that is not closed is an error. Every error shows the line with a caret under the offending
// character, and names typographic quotes and dashes for what they are. Knows nothing of passes.
absl::StatusOr<std::vector<PassCall>> ParsePipeline(absl::string_view text);

// InvalidArgument for the first call whose pass or whose arguments do not exist or do not parse.
absl::Status CheckPipeline(absl::Span<const PassCall> calls);

struct PassReport {
  std::string call;
  std::string name;
  int64_t rewrites = 0;
  int64_t rewrites_asked = 0;  // How often the pass asked for leave: see PassContext::AllowRewrite.
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  uint64_t bytes_before = 0;  // 0 when the options have no `measure_bytes`.
  uint64_t bytes_after = 0;
  double seconds = 0;         // The pass alone, without checks.
  std::string ignored_error;  // Set when the pass failed and ignore_errors kept the graph as it was.
  std::vector<std::string> notes;
  std::vector<MissedRewrite> misses;
};

struct PipelineOptions {
  // Where passes are looked up; null: FindPass. Lets a program, and the tests of the runner, bring passes of its own.
  std::function<absl::StatusOr<const PassDefinition*>(absl::string_view name)> find_pass;
  // The size of the graph as a file. May be null.
  std::function<uint64_t(const Graph&)> measure_bytes;
  // Called before a pass runs (for progress) and after (for reports, dumps, verification); an error stops the pipeline.
  std::function<void(size_t index, const PassCall& call)> before_pass;
  std::function<absl::Status(size_t index, const PassReport& report, const Graph& graph)> after_pass;
};

// Runs the calls in order over **graph, which is replaced where a failed pass with ignore_errors must be undone. After
// each pass the result is validated, its shapes are inferred anew, and the number of rewrites is held against the
// structural hash: a pass that lies or breaks the graph is an Internal error that names it. If the graph does not pass
// the checks to begin with, a note says so and they are left out. On an error the graph's state is not specified.
absl::StatusOr<std::vector<PassReport>> RunPipeline(std::unique_ptr<Graph>* graph, absl::Span<const PassCall> calls,
                                                    PassContext* context, const PipelineOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_PIPELINE_H_
