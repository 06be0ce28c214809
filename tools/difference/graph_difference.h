// Lists what differs between two graphs, node by node.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_
#define PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tools/command_line/json.h"
#include "tools/difference/lineage_file.h"

namespace permafrost {

struct GraphDifference {
  // "missing_node", "extra_node", "op", "device", "inputs", "control_inputs", "attr", "surroundings"; with a lineage
  // also "renamed_node", "merged_node", "derived_node".
  std::string kind;
  std::string node;  // Empty for what surrounds the nodes.
  std::string text;  // One line, the node included.
};

struct GraphDifferenceOptions {
  // Tensors count as equal when OutputDifference::relative() <= tolerance; absent: when their bits are equal.
  std::optional<double> tolerance;
  // Also compare versions, function library, and attributes whose names start with "_".
  bool is_strict = false;
  // How `actual` was made from `expected`; null: nodes of the same name answer to each other.
  const OriginsByName* origins = nullptr;
};

// What is different in `actual` from `expected`: nodes in the order of `expected`, then those that only `actual` has.
// The order of nodes, attributes and control inputs, and "x" against "x:0", make no difference. O(nodes + edges +
// weights).
std::vector<GraphDifference> CompareGraphs(const Graph& actual, const Graph& expected,
                                           const GraphDifferenceOptions& options);

// The key "differences" with an object for each, inside an object that the caller has begun.
void WriteDifferences(const std::vector<GraphDifference>& differences, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_
