// What each node of a graph has to do: arithmetic, and bytes that go in and out, from static shapes.
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

struct NodeCost {
  uint64_t flops = 0;         // As EstimateFlops counts.
  uint64_t input_bytes = 0;   // Weights included. 0 where shapes are not known.
  uint64_t output_bytes = 0;  // Likewise.
  uint64_t weight_bytes = 0;  // Of the inputs, what is a Const, or an Identity of one.
  std::string op;
};

class NodeCosts {
 public:
  NodeCosts() = default;
  // O(nodes + edges). Where shapes cannot be inferred, only the ops are known, and flops().status says why.
  NodeCosts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

  const FlopsEstimate& flops() const { return flops_; }
  // Null for a name that no node of the graph has.
  const NodeCost* Find(absl::string_view name) const;
  // Of what a label stands for. A delegate names a piece "node: what it does", after the node that matters most of
  // those it computes; null when it is named after none.
  const NodeCost* Find(const ProfileLabel& label) const;

 private:
  FlopsEstimate flops_;
  absl::flat_hash_map<std::string, NodeCost> by_name_;
};

// The node that a piece is named after: what stands before ": ", or all of it.
absl::string_view NodeOfPiece(absl::string_view piece);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_NODE_COSTS_H_
