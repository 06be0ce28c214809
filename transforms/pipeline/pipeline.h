// Parses transform strings and runs them over a graph. Every tool runs passes through this interface.
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
  std::vector<PassArgument> arguments;  // In order; repeated names are kept. Excludes ignore_errors.
  bool ignore_errors = false;
  bool is_of_preset = false;  // From the expansion of a preset, which need not match anything.

  // Returns the call as written in a transform string: `name(a="1", b="x y")`.
  std::string ToString() const;
};

// Parses a transform string in the grammar of TensorFlow's transform_graph: `name(arg=value, arg="a,b") name ...`. It
// may span several lines, commas between arguments are optional, and a backslash at the end of a line is white space.
// As an extension, blanks are allowed before "(", "," and ")" and around "=". A transform that is not closed is an
// error. Every error shows the line with a caret under the offending character, and identifies typographic quotes and
// dashes. Separators other than blanks between transforms are skipped after an error, so that later errors are found,
// too. Does not check that the passes exist.
absl::StatusOr<std::vector<PassCall>> ParsePipeline(absl::string_view text);

// Result of parsing as far as possible.
struct ScannedPipeline {
  std::vector<PassCall> calls;
  std::vector<absl::Status> errors;  // In the order of the text; empty for a valid one.
};
ScannedPipeline ScanPipeline(absl::string_view text);

// Returns InvalidArgument for calls whose pass does not exist or whose arguments are unknown or do not parse. The
// message names all errors, one per line.
absl::Status CheckPipeline(absl::Span<const PassCall> calls);

// Parses a transform string, expands its presets, and checks the calls. The message of an error names all errors, of
// the syntax first, one per line.
absl::StatusOr<std::vector<PassCall>> ParseTransforms(absl::string_view text);

struct PassReport {
  std::string call;
  std::string name;
  int64_t rewrites = 0;
  int64_t rewrites_asked = 0;  // Number of rewrites that the pass requested: see PassContext::AllowRewrite.
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  uint64_t bytes_before = 0;  // 0 if the options have no `measure_bytes`.
  uint64_t bytes_after = 0;
  double seconds = 0;         // Time of the pass itself, without checks.
  std::string ignored_error;  // Set if the pass failed and ignore_errors kept the graph unchanged.
  std::vector<std::string> notes;
  std::vector<MissedRewrite> misses;
};

struct PipelineOptions {
  // Looks up passes; FindPass if null. Allows a program or a test to supply its own passes.
  std::function<absl::StatusOr<const PassDefinition*>(absl::string_view name)> find_pass;
  // Returns the size of the graph as a file. May be null.
  std::function<uint64_t(const Graph&)> measure_bytes;
  // Called before a pass (for progress) and after it (for reports, dumps, verification). An error stops the pipeline.
  std::function<void(size_t index, const PassCall& call)> before_pass;
  std::function<absl::Status(size_t index, const PassReport& report, const Graph& graph)> after_pass;
};

// Runs the calls in order over **graph. *graph is replaced if a failed pass with ignore_errors must be undone. After
// each pass the result is validated, its shapes are inferred again, and the reported number of rewrites is checked
// against the structural hash. A pass that reports a wrong number or breaks the graph causes an Internal error that
// names the pass. If the input graph already fails these checks, a note reports that and the checks are skipped. After
// an error the state of the graph is unspecified.
absl::StatusOr<std::vector<PassReport>> RunPipeline(std::unique_ptr<Graph>* graph, absl::Span<const PassCall> calls,
                                                    PassContext* context, const PipelineOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_PIPELINE_H_
