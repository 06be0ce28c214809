// Which values the shapes of a graph depend on.
#ifndef PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_
#define PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// By node id: whether the shape of some output depends on what this node's outputs hold, as that of a Reshape depends
// on its second input and on whatever that was computed from. As InferShapes otherwise, errors included.
absl::StatusOr<std::vector<bool>> NodesReadByShapes(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_READS_H_
