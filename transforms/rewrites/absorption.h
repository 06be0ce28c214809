// Lets one node do the work of others that feed it.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"

namespace permafrost {

// FailedPrecondition, "node 'x' (Op) <what>": why a place is left alone, for PassContext::Miss.
absl::Status Blocked(const Node& node, absl::string_view what);
absl::Status Blocked(const Node& node, absl::string_view what, const WayOut& way_out);
// The same when input `index` of the node is not constant, and when the node is a declared input or output: the way out
// follows.
absl::Status BlockedByVariable(const Node& node, int index, absl::string_view what);
absl::Status BlockedByEndpoint(const Node& node);

// Cancelled: RewriteScope has not allowed a rewrite, so that the match is left alone without a miss.
absl::Status LimitReached();

// Blocked unless `node` has exactly one use, data or control, and is no endpoint of the graph.
absl::Status RequireUsedOnce(const Node& node);

// `inner`, which computes something that `node` can do as well, may be left out: it is not fed and waits for nothing.
// Otherwise false, with a miss at `node`.
bool MaySkip(const Node& node, const Node& inner, PassContext* context);

// What came of a try to rewrite at `node`: true for OK; false for FailedPrecondition, which becomes a miss, and for
// Cancelled (LimitReached), which does not. Other errors are handed on.
absl::StatusOr<bool> IsRewritten(const absl::Status& tried, const Node& node, PassContext* context);

// Tries `rewrite` at each of `heads`, of which it may remove the one that it is called for, and counts its successes as
// IsRewritten() does. `shapes` are those of the graph as it was before, or null, with a note, when they cannot be
// inferred. Colocations with nodes that went are dropped.
absl::StatusOr<int64_t> RewriteEach(Graph* graph, const std::vector<Node*>& heads, PassContext* context,
                                    absl::FunctionRef<absl::Status(Node* head, const ShapeMap* shapes)> rewrite);

// `node` reads `inputs` from now on, and waits for what it and `absorbed` waited for. Then those of `absorbed` that
// nobody needs any more are removed, with the constants that only they read; list consumers before their producers.
// REQUIRES: `node` is not among `absorbed`, and no absorbed node waits for `node`.
absl::Status Absorb(Graph* graph, Node* node, absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_
