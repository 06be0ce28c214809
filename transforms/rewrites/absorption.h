// Lets one node do the work of others that feed it.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
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

// `node` reads `inputs` from now on, and waits for what it and `absorbed` waited for. Then those of `absorbed` that
// nobody needs any more are removed, with the constants that only they read; list consumers before their producers.
// REQUIRES: `node` is not among `absorbed`, and no absorbed node waits for `node`.
absl::Status Absorb(Graph* graph, Node* node, absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_
