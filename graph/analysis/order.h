// Topological orders.
#ifndef PERMAFROST_GRAPH_ANALYSIS_ORDER_H_
#define PERMAFROST_GRAPH_ANALYSIS_ORDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Kahn's algorithm; among the nodes that are ready the one that comes first in the file goes first. A Merge or RefMerge
// waits for its control inputs and one data input, which opens the loops of V1 control flow. O(nodes log nodes +
// edges). InvalidArgument for a cycle: its length and the names of some of its nodes in order.
absl::StatusOr<std::vector<Node*>> StableTopologicalOrder(const Graph& graph);

// The order of the original tool, for those who compare files: the ready nodes form a stack that starts with the nodes
// without inputs in file order. Same errors. O(nodes + edges).
absl::StatusOr<std::vector<Node*>> StackTopologicalOrder(const Graph& graph);

// The same errors, without an order. O(nodes + edges).
absl::Status CheckAcyclic(const Graph& graph);

// By node id: whether the node is reached backwards from `roots` over data and control inputs, without going past a
// node for which `stop` (by id, may be empty) is set. O(nodes + edges), no recursion.
std::vector<bool> ReachedBackwards(const Graph& graph, const std::vector<Node*>& roots, const std::vector<bool>& stop);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_ORDER_H_
