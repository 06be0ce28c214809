// Replaces a node by several nodes, the last of which keeps its name and its readers.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_NODE_EXPANSION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_NODE_EXPANSION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

using NamedAttrs = std::vector<std::pair<absl::string_view, AttrValue>>;

// Base class of rewrites that express one op by others. New nodes are named `<node>/<suffix>`, precede the node, and
// are placed on its device. All methods return the errors of Graph::AddNode.
class NodeExpansion {
 protected:
  // The graph and the node must outlive the expansion.
  NodeExpansion(Graph* graph, Node* node) : graph_(graph), node_(node) {}

  absl::StatusOr<TensorRef> Const(absl::string_view suffix, Tensor value);
  absl::StatusOr<TensorRef> Float(absl::string_view suffix, float value);
  absl::StatusOr<TensorRef> Int(absl::string_view suffix, int64_t value);  // int32
  absl::StatusOr<TensorRef> Ints(absl::string_view suffix, std::vector<int32_t> values);
  absl::StatusOr<TensorRef> Ints(absl::string_view suffix, Shape shape, std::vector<int32_t> values);
  // Returns output 0 of a new node.
  absl::StatusOr<TensorRef> Add(absl::string_view suffix, Op op, absl::Span<const TensorRef> inputs, NamedAttrs attrs);
  // Returns Transpose of `x`, whose dtype is `type`.
  absl::StatusOr<TensorRef> Transposed(absl::string_view suffix, TensorRef x, std::vector<int32_t> order,
                                       const AttrValue& type);
  // Turns the node into `op`. It keeps its name, readers, device and control inputs.
  absl::Status Become(Op op, absl::Span<const TensorRef> inputs, NamedAttrs attrs);

  Graph* graph_;
  Node* node_;

 private:
  std::string NameOf(absl::string_view suffix) const;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_NODE_EXPANSION_H_
