// Resolves the precision of a run: reads it from the file of an earlier run, or chooses it on samples.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_RESOLUTION_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_RESOLUTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/model/run_flags.h"

namespace permafrost {

// A model that a tool is about to run.
struct ModelToRun {
  const Graph& graph;
  absl::Span<const Endpoint> inputs, outputs;
  std::string path;
  bool keeps_weights = true;  // False if the delegate will also run other models.
};

// A precision, with its plan if it needs one.
struct ResolvedPrecision {
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;
};

// Resolves a precision that needs samples (NeedsSamples). Reads --precision_plan, or the plan of an earlier run in
// `cache_dir` (may be empty) with the same samples. Without such a file, chooses a precision on the samples, prints the
// trials on the console and writes the file. `fingerprint` identifies the model in the file, `session` holds the
// options of its runs without a delegate. FailedPrecondition if the precision does not run, or if the file given by the
// user is for another model or precision; errors of ChoosePrecision, ParsePrecisionPlan and of files.
absl::StatusOr<ResolvedPrecision> ResolvePrecision(const RunFlags& run, const ModelToRun& model,
                                                   absl::Span<const std::vector<Tensor>> samples,
                                                   const std::string& fingerprint, const std::string& cache_dir,
                                                   const SessionOptions& session, FileSystem& files, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_RESOLUTION_H_
