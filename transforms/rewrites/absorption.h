// Merges the work of feeding nodes into the node that reads them.
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

// Returns FailedPrecondition, "node 'x' (Op) <what>": the reason of a near miss, for PassContext::Miss.
absl::Status Blocked(const Node& node, absl::string_view what);
absl::Status Blocked(const Node& node, absl::string_view what, const WayOut& way_out);
// Return FailedPrecondition as Blocked() does, with the way out added. BlockedByVariable: input `index` of the node is
// not constant. BlockedByEndpoint: the node is a declared input or output.
absl::Status BlockedByVariable(const Node& node, int index, absl::string_view what);
absl::Status BlockedByEndpoint(const Node& node);

// Returns Cancelled: RewriteScope did not permit a rewrite, so the match is left unchanged without a miss.
absl::Status LimitReached();

// Returns Blocked() if the node ends a quantised operator: the mark of the operator would go with the node, and the
// operator would be computed in float (graph/analysis/uniform_quantization.h).
absl::Status RequireUnmarked(const Node& node);

// Returns Blocked() unless `node` has exactly one use, data or control, is not an endpoint of the graph, and does not
// end a quantised operator.
absl::Status RequireUsedOnce(const Node& node);

// Returns true if `inner`, whose work `node` can do, may be removed: it is not fed, has no control inputs and does not
// end a quantised operator. Otherwise returns false and records a miss at `node`.
bool MaySkip(const Node& node, const Node& inner, PassContext* context);

// Converts the result of an attempt to rewrite `node`. Returns true for OK. Returns false for FailedPrecondition, which
// is recorded as a miss, and for Cancelled (LimitReached), which is not. Returns any other error.
absl::StatusOr<bool> IsRewritten(const absl::Status& tried, const Node& node, PassContext* context);

// Calls `rewrite` for each of `heads` and counts the successes as defined by IsRewritten(). `rewrite` may remove the
// node that it is called for. `shapes` describe the graph before the first rewrite; they are null, with a note, if they
// cannot be inferred. Colocations with removed nodes are dropped.
absl::StatusOr<int64_t> RewriteEach(Graph* graph, const std::vector<Node*>& heads, PassContext* context,
                                    absl::FunctionRef<absl::Status(Node* head, const ShapeMap* shapes)> rewrite);

// Sets the data inputs of `node` to `inputs` and adds the control inputs of `absorbed`. Then removes those of
// `absorbed` that have no remaining uses, and the constants that only they read. List consumers before their producers.
// REQUIRES: `node` is not among `absorbed`, and no absorbed node depends on `node`.
absl::Status Absorb(Graph* graph, Node* node, absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_ABSORPTION_H_
