// Cost of each node of a graph: arithmetic and bytes read and written, from static shapes.
#ifndef PERMAFROST_TOOLS_MEASURING_NODE_COSTS_H_
#define PERMAFROST_TOOLS_MEASURING_NODE_COSTS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "runtime_check/profiling/profiler.h"
#include "tools/summary/flops.h"

namespace permafrost {

// The cost of one run of a node.
struct NodeCost {
  uint64_t flops = 0;         // Counted as by EstimateFlops.
  uint64_t input_bytes = 0;   // Includes weights. 0 if shapes are unknown.
  uint64_t output_bytes = 0;  // 0 if shapes are unknown.
  uint64_t weight_bytes = 0;  // The part of input_bytes that is a Const, or an Identity of one.
  std::string op;
};

// The costs of all nodes of a graph.
class NodeCosts {
 public:
  NodeCosts() = default;
  // Computes the costs. O(nodes + edges). If shapes cannot be inferred, only the ops are known, and flops().status has
  // the reason.
  NodeCosts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

  const FlopsEstimate& flops() const { return flops_; }
  // Returns the cost of a node; null if the graph has no node of this name.
  const NodeCost* Find(absl::string_view name) const;
  // Returns the cost of the node that a label stands for. A delegate names a piece "node: description", after its most
  // expensive node; null if the piece is not named after a node.
  const NodeCost* Find(const ProfileLabel& label) const;

 private:
  FlopsEstimate flops_;
  absl::flat_hash_map<std::string, NodeCost> by_name_;
};

// Returns the node that a piece is named after: the text before ": ", or all of it.
absl::string_view NodeOfPiece(absl::string_view piece);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_NODE_COSTS_H_
