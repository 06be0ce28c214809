// Runs a graph on inputs, and visits the values of many tensors.
#ifndef PERMAFROST_TOOLS_TRANSFORM_VISITED_VALUES_H_
#define PERMAFROST_TOOLS_TRANSFORM_VISITED_VALUES_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "graph/tensor.h"
#include "runtime_check/session_options.h"
#include "tools/model/model_inputs.h"

namespace permafrost {

// Calls visit(i, set, value) with the value of tensors[i] for inputs[set], for all of them; for each tensor in the
// order of the inputs. As many tensors are fetched by one run as fit into 512 MiB by their static shapes, in which
// unknown dimensions count as 1. The graph's interface must be declared. Errors are those of Session.
absl::Status VisitValues(const Graph& graph, const ShapeMap& shapes, absl::Span<const TensorRef> tensors,
                         absl::Span<const InputSet> inputs, const SessionOptions& options,
                         absl::FunctionRef<void(size_t i, size_t set, const Tensor& value)> visit);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_VISITED_VALUES_H_
