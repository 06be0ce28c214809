// Regions of a graph that do not depend on the order of dimensions, bounded by Transpose nodes. Such a region can also
// compute in the order that its inputs have before the Transpose nodes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/rewrites/permutation.h"

namespace permafrost {

// Returns OK if the constant that has a number for each dimension can be permuted: the paddings of Pad, the axes of a
// reduction, the sizes of a transposed convolution. Also OK if the node has none.
absl::Status MayChangeParameter(const Node& node, int rank);

// Returns true if a node can compute with permuted dimensions, after its constants and axes are permuted: elementwise
// ops, AddN, ConcatV2, Pad, reductions that keep their dimensions. The result and each input that is neither scalar nor
// constant must have `rank` dimensions in `shapes`. Returns false for endpoints.
bool MayChangeOrder(const Node& node, int rank, const Graph& graph, const ShapeMap& shapes);

// All nodes connected to a seed by edges without a Transpose, as far as MayChangeOrder() holds, or a given set of
// nodes.
class TransposedRegion {
 public:
  // Grows the region from `seed`, which must satisfy MayChangeOrder(). `order` is that of the Transpose nodes that feed
  // it.
  TransposedRegion(Graph* graph, const ShapeMap& shapes, Node* seed, Permutation order);
  // A region of these nodes. Each satisfies MayChangeOrder(), or is a layout op (layout_ops.h) of rank 4 that is no
  // endpoint, whose parameter is constant and which gets `format`.
  TransposedRegion(Graph* graph, const ShapeMap& shapes, std::vector<Node*> nodes, Permutation order,
                   absl::string_view format);

  const std::vector<Node*>& nodes() const { return nodes_; }
  // Returns the number of Transpose nodes that a change of order removes, minus the number that it adds.
  int64_t Gain() const;
  // Changes the order. Removes Transpose nodes around the region, adds new ones on the rest of its border, and permutes
  // its constants and axes. The caller removes Transpose nodes that are no longer read. The shapes are stale
  // afterwards.
  absl::Status ChangeOrder();

 private:
  bool Contains(const Node* node) const { return member_.contains(node); }
  // Role of an input of a member.
  enum class InputKind { kMember, kTransposed, kConstant, kScalar, kParameter, kOther, kOutside };
  InputKind KindOf(const Node& node, int i) const;
  // Returns true for a Transpose that only reverses the region's order.
  bool IsInverse(const Node& node) const;
  // Returns true for a Transpose that an earlier change has left without users.
  bool IsUnread(const Node& node) const;

  absl::Status ChangeInputs(Node* node);
  absl::Status ChangeParameter(Node* node);
  absl::Status ChangeUses(Node* node);
  absl::StatusOr<TensorRef> Untransposed(TensorRef outside, Node* position);
  absl::StatusOr<Node*> AddTranspose(TensorRef input, const Permutation& order, Node* position);

  Graph* graph_;
  const ShapeMap& shapes_;
  const Permutation order_;
  const Permutation inverse_;
  const std::string format_;  // Of layout ops; empty for a region without them.
  std::vector<Node*> nodes_;
  absl::flat_hash_set<const Node*> member_;
  absl::flat_hash_map<TensorRef, TensorRef> untransposed_;  // New Transpose nodes, by input.
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_
