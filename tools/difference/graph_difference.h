// Compares two graphs node by node.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_
#define PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tools/command_line/json.h"
#include "tools/difference/lineage_file.h"

namespace permafrost {

// One difference between two graphs.
struct GraphDifference {
  // "missing_node", "extra_node", "op", "device", "inputs", "control_inputs", "attr", "surroundings"; with a lineage
  // also "renamed_node", "merged_node", "derived_node".
  std::string kind;
  std::string node;  // Empty for differences outside the nodes (versions, library).
  std::string text;  // One line, including the name of the node.
};

struct GraphDifferenceOptions {
  // Tensors count as equal if OutputDifference::relative() <= tolerance; absent: if their bits are equal.
  std::optional<double> tolerance;
  // Also compare versions, function library, and attributes whose names start with "_".
  bool is_strict = false;
  // The lineage of `actual` relative to `expected`; null: nodes are paired by name.
  const OriginsByName* origins = nullptr;
};

// Returns the differences of `actual` from `expected`: nodes in the order of `expected`, then those that only `actual`
// has. The order of nodes, attributes and control inputs is ignored, and "x" equals "x:0". O(nodes + edges + weights).
std::vector<GraphDifference> CompareGraphs(const Graph& actual, const Graph& expected,
                                           const GraphDifferenceOptions& options);

// Writes the key "differences" with one object per difference, inside an object that the caller has begun.
void WriteDifferences(const std::vector<GraphDifference>& differences, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_GRAPH_DIFFERENCE_H_
