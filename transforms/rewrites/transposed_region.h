// Regions of a graph that do not care in which order the dimensions of their tensors lie, between Transpose nodes that
// say it. Such a region can compute in the order of what comes before the Transpose nodes as well.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/rewrites/permutation.h"

namespace permafrost {

// True for a node that computes the same whatever the order of its dimensions, once its constants and axes follow:
// elementwise ops, AddN, ConcatV2, Pad, reductions that keep their dimensions. The result and each input that is no
// scalar and no constant must have `rank` dimensions, which `shapes` must know. No endpoint is one.
bool MayChangeOrder(const Node& node, int rank, const Graph& graph, const ShapeMap& shapes);

// All nodes that are reached from one over edges without a Transpose, as far as they may change their order.
class TransposedRegion {
 public:
  // Grows the region from `seed`, which may change its order. `order` is that of the Transpose nodes that feed it.
  TransposedRegion(Graph* graph, const ShapeMap& shapes, Node* seed, Permutation order);

  const std::vector<Node*>& nodes() const { return nodes_; }
  // How many Transpose nodes a change of the order takes out, less those that it puts in.
  int64_t Gain() const;
  // Changes the order: Transpose nodes around the region go, what remains of its border gets new ones, its constants
  // and axes follow. Transpose nodes that nobody reads then are left to the caller. The shapes are stale afterwards.
  absl::Status ChangeOrder();

 private:
  bool Contains(const Node* node) const { return member_.contains(node); }
  // What an input of a member is to the change.
  enum class InputKind { kMember, kTransposed, kConstant, kScalar, kParameter, kOutside };
  InputKind KindOf(const Node& node, int i) const;
  // A Transpose that undoes the region's order and does nothing else.
  bool IsInverse(const Node& node) const;
  // A Transpose that an earlier change has left without users.
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
  std::vector<Node*> nodes_;
  absl::flat_hash_set<const Node*> member_;
  absl::flat_hash_map<TensorRef, TensorRef> untransposed_;  // New Transpose nodes, by what they read.
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_TRANSPOSED_REGION_H_
