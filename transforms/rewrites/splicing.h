// Removes nodes whose users can read an input of the node instead.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_SPLICING_H_
#define PERMAFROST_TRANSFORMS_REWRITES_SPLICING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

inline constexpr int kNoSource = -1;
// Input i can replace output i, for all ports.
inline constexpr int kEachPort = -2;

// Returns the data input that can replace output 0 of the node, kEachPort, or kNoSource to keep the node.
using SourceInput = absl::FunctionRef<int(const Node&)>;

// Removes every node with a source; its users read the source instead. Its control inputs become control inputs of its
// users, and nodes that waited for it wait for the source's node. Producers of its other inputs are removed as well if
// they have no other uses, no state and no side effects.
//
// Kept, with a miss: a declared input or output; a node that ends a quantised operator; a node whose second or later
// output is used, unless it has kEachPort; a kEachPort node with several inputs in a graph with control flow, where its
// readers wait for all of them; a node directly after Switch or Merge that carries control edges of a branch; a node
// with control inputs directly before a Merge, which would wait for them in every branch; a node with more control
// inputs than can be passed on in linear time.
//
// Returns the number of removed nodes, and notes it for each op. Returns InvalidArgument for nodes that form a cycle.
// O(nodes + edges).
absl::StatusOr<int64_t> SpliceOut(Graph* graph, SourceInput source_input, PassContext* context);

// Returns true if a node without uses may be removed: it has no state, no side effects and no part in control flow, as
// far as the op table knows. Unused random numbers may be removed.
bool MayGoUnread(const Node& node);

// Removes those of `nodes` that are unused, removable and not endpoints, then those that only they used. Returns the
// number of removed nodes.
absl::StatusOr<int64_t> RemoveUnread(Graph* graph, std::vector<Node*> nodes,
                                     absl::FunctionRef<bool(const Node&)> may_go = MayGoUnread);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_SPLICING_H_
