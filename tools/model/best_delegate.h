// --delegate=best: measures the installed delegates on the model, and takes the fastest.
#ifndef PERMAFROST_TOOLS_MODEL_BEST_DELEGATE_H_
#define PERMAFROST_TOOLS_MODEL_BEST_DELEGATE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/model/precision_resolution.h"
#include "tools/model/run_flags.h"

namespace permafrost {

// Runs the samples with the built-in kernels, with each delegate in f32, and with all of them together, and times them
// in turn. Prints a line about each on the console. Returns the fastest delegate whose outputs are within the accuracy
// budget (AccuracyBudget), null for the built-in kernels. `session` holds the options of the runs. InvalidArgument
// without samples; errors of the reference run.
absl::StatusOr<std::shared_ptr<const Delegate>> ChooseBestDelegate(const RunFlags& run, const ModelToRun& model,
                                                                   absl::Span<const std::vector<Tensor>> samples,
                                                                   const SessionOptions& session, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_BEST_DELEGATE_H_
