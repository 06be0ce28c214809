// The form of a loop, for While and for the frames of V1 control flow alike: its variables, its condition and the
// values that no iteration changes.
#ifndef PERMAFROST_GRAPH_ANALYSIS_LOOP_FORM_H_
#define PERMAFROST_GRAPH_ANALYSIS_LOOP_FORM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// A variable of a loop.
struct LoopVariable {
  // The tensors that hold its value in the condition and in the body.
  std::vector<TensorRef> reads;
  // Its value in the next iteration. The node is null if no iteration changes the variable.
  TensorRef next{nullptr, 0};
  // Its value before the first iteration, outside of the loop. The node is null for the argument of a function.
  TensorRef initial{nullptr, 0};
  // In a frame, the Enter and the Exit; the latter is null if the value after the loop has no reader.
  const Node* enter = nullptr;
  const Node* exit = nullptr;

  bool is_invariant() const { return next.node == nullptr; }
};

// A loop: while `condition` holds, all variables get their next values at the same time.
struct LoopForm {
  std::vector<LoopVariable> variables;
  TensorRef condition{nullptr, 0};
  // The nodes that compute the condition and the next values, in topological order. In a frame the nodes of the
  // condition are among those of the body, and the first list is empty.
  std::vector<const Node*> condition_nodes;
  std::vector<const Node*> body_nodes;
};

// A function as a loop reads it: the results depend on the arguments by the nodes, which are in topological order.
struct LoopFunction {
  std::vector<TensorRef> arguments;
  std::vector<TensorRef> results;
  std::vector<const Node*> nodes;
};

// Returns the form of a While with these functions. InvalidArgument unless both functions have an argument, and the
// body a result, for each variable, and the condition has one result.
absl::StatusOr<LoopForm> FormOfWhile(const LoopFunction& condition, const LoopFunction& body);

// Returns the form of a frame with these nodes, in topological order apart from NextIteration: Enter, Merge, Switch,
// NextIteration and Exit for each variable, and Enter nodes of constants. Variables are in the order of their Merge
// nodes, followed by the constants. Unimplemented, with the node, for a frame of another form: with branches or frames
// inside it, for instance.
absl::StatusOr<LoopForm> FormOfFrame(absl::Span<const Node* const> nodes);

// Returns the tensor behind nodes that only pass it on: Identity and the like, and constant Enter nodes.
TensorRef BehindPasses(TensorRef ref);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_LOOP_FORM_H_
