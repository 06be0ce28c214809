// What sample inputs tell about the values inside of a model.
#ifndef PERMAFROST_RUNTIME_CHECK_PRECISION_CALIBRATION_H_
#define PERMAFROST_RUNTIME_CHECK_PRECISION_CALIBRATION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/precision/precision_plan.h"
#include "runtime_check/precision/value_range.h"
#include "runtime_check/session.h"

namespace permafrost {

// Runs all samples, a part of the graph's tensors at a time so that memory stays bounded, and looks at the first output
// of each node in the report's partitions and of what they read, where these are floats. `options` says who computes.
// InvalidArgument without samples, and where a value is not finite, with the name of the node; errors of the runs.
absl::StatusOr<std::map<std::string, TensorStatistics>> Calibrate(const Graph& graph,
                                                                  absl::Span<const std::string> feeds,
                                                                  absl::Span<const std::vector<Tensor>> samples,
                                                                  const DelegationReport& report, RangeMethod method,
                                                                  const SessionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_CALIBRATION_H_
