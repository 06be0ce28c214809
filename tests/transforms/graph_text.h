// Graphs as text for people: compact files, and one line for each node that differs.
#ifndef PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_
#define PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// GraphDef in text format with a line for what a node is and one for each attribute; small tensors as lists of numbers.
absl::StatusOr<std::string> CompactText(const Graph& graph);

// A line for each node that only one graph has or that differs, for another order, and for what surrounds the nodes;
// empty for equal graphs. Tensors are compared by their elements, attributes without regard to their order.
std::vector<std::string> GraphDifferences(const Graph& found, const Graph& expected);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_
