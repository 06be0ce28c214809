// Calibrates for passes: runs a graph on inputs, and returns what a pass asks for as the text of a file.
#ifndef PERMAFROST_TOOLS_TRANSFORM_CALIBRATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_CALIBRATION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/session_options.h"
#include "tools/model/model_inputs.h"
#include "transforms/rewrites/calibration_request.h"

namespace permafrost {

// Answers a request of a pass. The graph's interface must be declared; `inputs` are sets for its inputs.
// Errors are those of Session; InvalidArgument for an unknown rounding.
absl::StatusOr<std::string> Calibrate(const Graph& graph, absl::Span<const InputSet> inputs,
                                      const SessionOptions& options, const CalibrationRequest& request,
                                      int num_threads);

// Returns lines of a calibration file (transforms/rewrites/channel_ranges.h). Tensors are fetched together up
// to 512 MiB; those with values that are not finite have no line.
absl::StatusOr<std::string> ChannelRangesText(const Graph& graph, absl::Span<const InputSet> inputs,
                                              const SessionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_CALIBRATION_H_
