// Readable text forms of graphs: compact files, and one line for each node that differs.
#ifndef PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_
#define PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Returns the GraphDef in text format, with one line per node and per attribute, and small tensors as lists of numbers.
absl::StatusOr<std::string> CompactText(const Graph& graph);

// Returns a line for each node that differs or is in one graph only, for another order, and for data outside the nodes;
// empty for equal graphs. Tensors are compared by their elements, attributes regardless of their order.
std::vector<std::string> GraphDifferences(const Graph& found, const Graph& expected);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_GRAPH_TEXT_H_
