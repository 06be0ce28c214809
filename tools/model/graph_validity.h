// Checks a graph before a tool runs it.
#ifndef PERMAFROST_TOOLS_MODEL_GRAPH_VALIDITY_H_
#define PERMAFROST_TOOLS_MODEL_GRAPH_VALIDITY_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// Returns InvalidArgument if Validate or ValidateFunctions rejects the graph, without the nodes and functions that its
// declared outputs do not need. TensorFlow rejects such a graph, too. Kernels may be missing for a valid graph: a
// session reports those.
absl::Status CheckValidity(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_GRAPH_VALIDITY_H_
