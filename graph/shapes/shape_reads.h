// Finds the values on which the shapes of a graph depend.
#ifndef PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_
#define PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Returns, by node id, whether the shape of some output depends on the values of this node. For example, the shape of a
// Reshape depends on its second input and on everything that input is computed from. Same errors as InferShapes.
absl::StatusOr<std::vector<bool>> NodesReadByShapes(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_
