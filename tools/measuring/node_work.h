// The work of a model on a device: the graph's nodes in groups that fast kernels compute as one.
#ifndef PERMAFROST_TOOLS_MEASURING_NODE_WORK_H_
#define PERMAFROST_TOOLS_MEASURING_NODE_WORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// Kinds of work that reach different shares of a device's peak.
enum class WorkClass : uint8_t {
  kConvolution,        // Filters larger than 1 x 1.
  kNarrowConvolution,  // Fewer than 8 input channels: too few to fill a vector.
  kPointwise,          // Filters of 1 x 1: a matrix product.
  kDepthwise,
  kTransposed,
  kMatrix,       // Matrix products that are not convolutions.
  kPool,         // Also means and other reductions, and resizing with weights.
  kElementwise,  // Elementwise nodes that are not fused into another group.
  kMovement,     // Copies, pads, joins, slices, resizes.
  kOther,
};
inline constexpr int kNumWorkClasses = 10;
absl::string_view WorkClassName(WorkClass work_class);

// The work of one group of nodes.
struct NodeWork {
  const Node* node = nullptr;  // The node with the arithmetic, which names the group.
  WorkClass work_class = WorkClass::kOther;
  double flops = 0;                  // Counted as by EstimateFlops; 0 for nodes that it does not count.
  double activation_bytes = 0;       // Tensors that the group reads and writes, once each.
  double weight_bytes = 0;           // Constants that it reads.
  double step_elements = 0;          // Elements computed by elementwise nodes of the group, summed over nodes.
  double hard_elements = 0;          // The part of step_elements with exponentials and similar functions.
  std::vector<const Node*> members;  // In order, including `node`.
};

// The work of a model, divided into groups.
struct ModelWork {
  std::vector<NodeWork> groups;   // In a topological order.
  std::vector<int32_t> group_of;  // By node id: index into `groups`, or -1 for nodes without cost.
  double weight_bytes = 0;        // Sum over all groups.
};

// Divides the graph into groups. With `fuses`, an elementwise node joins the node before it if it is the only reader of
// that result, as in delegates. Nodes computed before the run, and nodes that only pass tensors on, have no cost. `fed`
// holds the shapes of the fed inputs. Returns errors of shape inference; FailedPrecondition if the shape of a node with
// cost is unknown, or if the graph branches, loops or calls functions. O(nodes + edges).
absl::StatusOr<ModelWork> DivideWork(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed,
                                     bool fuses);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_NODE_WORK_H_
