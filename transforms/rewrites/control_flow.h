// Lowers functional branches and loops to V1 control flow: Switch and Merge; Enter, NextIteration and Exit.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CONTROL_FLOW_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CONTROL_FLOW_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/rewrites/body_copy.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {

// Returns `ref`, of type `type`, as the bool scalar that Switch and LoopCond require: itself, or a comparison with 0.
// New nodes are placed before `node` and named after it; those without inputs wait for `gate` (may be null). REQUIRES:
// `type` is bool or numeric.
absl::StatusOr<TensorRef> AsBool(Graph* graph, Node* node, TensorRef ref, DType type, Node* gate);
bool IsBoolLike(DType type);

// One of the function bodies that a branching node selects from.
struct Branch {
  const CallInlining::Body* body;
  std::string label;  // Prefix of its nodes' names: `<node>/<label>/`.
  TensorRef predicate;
  int side;  // The branch runs if the predicate is true (1) or false (0).
};

// Replaces `node` with the branches, exactly one of which runs. The arguments are the data inputs of `node` from 1 on.
// The predicates already wait for the control inputs of `node`. Returns the copied nodes. Returns InvalidArgument if
// the bodies do not match the node's attributes Tin and Tout.
absl::StatusOr<std::vector<Node*>> LowerBranches(Graph* graph, Node* node, const std::vector<Branch>& branches,
                                                 CopyBudget* budget);

// Replaces `node` (StatelessWhile or While, at least one data input) with a loop. Values that the body returns
// unchanged enter the frame as constants. Returns the copied nodes, or the errors of LowerBranches.
absl::StatusOr<std::vector<Node*>> LowerLoop(Graph* graph, Node* node, const CallInlining::Body& condition,
                                             const CallInlining::Body& body, CopyBudget* budget);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONTROL_FLOW_H_
