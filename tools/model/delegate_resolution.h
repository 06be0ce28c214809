// Creates the delegate of a run for a model, with its precision and with cached packed weights.
#ifndef PERMAFROST_TOOLS_MODEL_DELEGATE_RESOLUTION_H_
#define PERMAFROST_TOOLS_MODEL_DELEGATE_RESOLUTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "io/file_system.h"
#include "runtime_check/session.h"
#include "tools/command_line/console.h"
#include "tools/model/kept_weights.h"
#include "tools/model/precision_resolution.h"
#include "tools/model/run_flags.h"

namespace permafrost {

// Sets the delegate and the packed weights of `chosen` for the model. With --precision=auto, selects the fastest
// precision of the delegate that stays within the accuracy budget on the first few samples, and prints it on the
// console. With int8 or mixed, plans the precision with the samples (see ResolvePrecision); a model packed for the
// precision contains its plan. Packed weights in the model's package or in --cache_dir are used if they fit. Errors are
// those of ResolvePrecision and MakeDelegate.
absl::StatusOr<KeptWeights> ResolveDelegate(const RunFlags& run, const ModelToRun& model,
                                            absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                            SessionOptions* chosen, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_DELEGATE_RESOLUTION_H_
