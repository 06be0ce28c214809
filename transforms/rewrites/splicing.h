// Takes nodes out of a graph whose users can read what the node reads.
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
// Input i may stand for output i, for all of them.
inline constexpr int kEachPort = -2;

// The data input that may stand for output 0 of the node, kEachPort, or kNoSource for a node that stays.
using SourceInput = absl::FunctionRef<int(const Node&)>;

// Removes every node with a source; its users read the source. Its control inputs become control inputs of its users,
// and who waited for it waits for the source's node. What computed its other inputs goes too, if nobody else needs it
// and it has neither state nor side effects.
//
// Stays, with a miss: a declared input or output; a node whose second or later output is used, unless it has kEachPort;
// one of kEachPort with several inputs in a graph with control flow, where its readers wait for all of them; one that
// carries control edges of a branch, right behind Switch or Merge; one with control inputs right before a Merge, which
// would wait for them in every branch; one with more control inputs than can be handed on in linear time.
//
// Returns how many nodes went, and notes how many of which op. InvalidArgument for nodes that read each other in a
// cycle. O(nodes + edges).
absl::StatusOr<int64_t> SpliceOut(Graph* graph, SourceInput source_input, PassContext* context);

// Whether a node may go once nobody uses it: not if it has state or side effects, or may have, or belongs to control
// flow. Random numbers that nobody reads go.
bool MayGoUnread(const Node& node);

// Removes those of `nodes` that nobody uses, that are no endpoints and that may go, then those that only they used.
// Returns how many went.
absl::StatusOr<int64_t> RemoveUnread(Graph* graph, std::vector<Node*> nodes,
                                     absl::FunctionRef<bool(const Node&)> may_go = MayGoUnread);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_SPLICING_H_
