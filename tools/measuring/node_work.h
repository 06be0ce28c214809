// What a device has to do for a model: the graph's nodes in groups that fast kernels compute as one.
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

// Kinds of work that reach different shares of what a device can do.
enum class WorkClass : uint8_t {
  kConvolution,        // Filters of more than one place.
  kNarrowConvolution,  // The same, with fewer than 8 channels going in: too few to fill a vector.
  kPointwise,          // Filters of one place: a matrix product.
  kDepthwise,
  kTransposed,
  kMatrix,       // Products of matrices that are no convolutions.
  kPool,         // Also means and other reductions, and resizing with weights.
  kElementwise,  // What is not fused into one of the above.
  kMovement,     // Copies, pads, joins, slices, resizes.
  kOther,
};
inline constexpr int kNumWorkClasses = 10;
absl::string_view WorkClassName(WorkClass work_class);

struct NodeWork {
  const Node* node = nullptr;  // That the group is named after: the one with the arithmetic.
  WorkClass work_class = WorkClass::kOther;
  double flops = 0;                  // As EstimateFlops counts; of nodes that it does not count, 0.
  double activation_bytes = 0;       // Tensors that the group reads and makes, once each.
  double weight_bytes = 0;           // Constants that it reads.
  double step_elements = 0;          // Elements that elementwise nodes of the group compute, each node for itself.
  double hard_elements = 0;          // Those of them that are exponentials and the like.
  std::vector<const Node*> members;  // In order, `node` among them.
};

struct ModelWork {
  std::vector<NodeWork> groups;   // In an order in which they can run.
  std::vector<int32_t> group_of;  // By node id: index into `groups`, or -1 for what costs nothing in a run.
  double weight_bytes = 0;        // Of all groups.
};

// Divides the graph. With `fuses`, an elementwise node joins the node before it where nobody else reads that one's
// result, as delegates do. Nodes whose inputs are all known before the run, and those that only pass tensors on, cost
// nothing. `fed` has the shapes that are really fed. Errors of shape inference; FailedPrecondition where the shape of a
// node that costs something is not known, or the graph branches, loops or calls functions. O(nodes + edges).
absl::StatusOr<ModelWork> DivideWork(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed,
                                     bool fuses);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_NODE_WORK_H_
