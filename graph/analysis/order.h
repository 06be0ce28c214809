// Topological orders and reachability.
#ifndef PERMAFROST_GRAPH_ANALYSIS_ORDER_H_
#define PERMAFROST_GRAPH_ANALYSIS_ORDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Returns a topological order by Kahn's algorithm; of the ready nodes, the first in file order comes next. A Merge or
// RefMerge waits for its control inputs and for one data input, so loops of V1 control flow do not count as cycles.
// O(nodes log nodes + edges). Returns InvalidArgument for a cycle, with its length and the names of some of its nodes
// in order.
absl::StatusOr<std::vector<Node*>> StableTopologicalOrder(const Graph& graph);

// Returns the order that the original tool produces, so that files can be compared: the ready nodes form a stack that
// initially holds the nodes without inputs in file order. Same errors. O(nodes + edges).
absl::StatusOr<std::vector<Node*>> StackTopologicalOrder(const Graph& graph);

// Returns the same errors as StableTopologicalOrder without computing an order. O(nodes + edges).
absl::Status CheckAcyclic(const Graph& graph);

// Returns, by node id, whether the node is reachable backwards from `roots` over data and control inputs. The search
// does not continue past a node for which `stop` (by id, may be empty) is true. O(nodes + edges), without recursion.
std::vector<bool> ReachedBackwards(const Graph& graph, const std::vector<Node*>& roots, const std::vector<bool>& stop);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_ORDER_H_
