// Calibration: statistics of the values inside a model, from sample inputs.
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

// Returns the statistics of the first output of each node in the report's partitions, and of the tensors that these
// nodes read, if they are floats. Runs all samples for a part of the tensors at a time, so that memory stays bounded.
// `options` selects what computes the model. InvalidArgument without samples, and for a value that is not finite, with
// the name of the node; errors of the runs.
absl::StatusOr<std::map<std::string, TensorStatistics>> Calibrate(const Graph& graph,
                                                                  absl::Span<const std::string> feeds,
                                                                  absl::Span<const std::vector<Tensor>> samples,
                                                                  const DelegationReport& report, RangeMethod method,
                                                                  const SessionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PRECISION_CALIBRATION_H_
