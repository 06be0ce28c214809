// Turns choices and loops over functions into V1 control flow: Switch and Merge; Enter, NextIteration and Exit.
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

// `ref`, of type `type`, as the bool scalar that Switch and LoopCond want: itself, or a comparison with 0. The new
// nodes stand before `node` and bear its name; `gate` (may be null) is what they wait for if they have no input. The
// caller knows that the type is bool or a number.
absl::StatusOr<TensorRef> AsBool(Graph* graph, Node* node, TensorRef ref, DType type, Node* gate);
bool IsBoolLike(DType type);

// One of the bodies between which a node chooses.
struct Branch {
  const CallInlining::Body* body;
  std::string label;  // Names of its nodes begin with `<node>/<label>/`.
  TensorRef predicate;
  int side;  // 1: the branch runs when the predicate is true; 0: when it is false.
};

// Puts the branches, of which exactly one runs, in the place of `node`, whose data inputs from 1 on are the arguments.
// What the node waits for the predicates wait for already. Returns the copied nodes. InvalidArgument when the bodies do
// not fit the node's attributes Tin and Tout.
absl::StatusOr<std::vector<Node*>> LowerBranches(Graph* graph, Node* node, const std::vector<Branch>& branches,
                                                 CopyBudget* budget);

// Puts a loop in the place of `node` (StatelessWhile or While, at least one data input). What the body hands on as it
// is enters the frame as a constant. Same returns and errors.
absl::StatusOr<std::vector<Node*>> LowerLoop(Graph* graph, Node* node, const CallInlining::Body& condition,
                                             const CallInlining::Body& body, CopyBudget* budget);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CONTROL_FLOW_H_
