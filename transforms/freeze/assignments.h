// Assignments to resource variables on the way to the outputs of a graph.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_ASSIGNMENTS_H_
#define PERMAFROST_TRANSFORMS_FREEZE_ASSIGNMENTS_H_

#include "absl/status/status.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns whether the op changes the variable of its first input and has no outputs, such as AssignAddVariableOp and
// ResourceScatterAdd.
bool IsAssignment(Op op);

// Replaces assignments by NoOps if no output of the graph depends on the variable's value, and removes control edges
// from other readers of that variable. Training leaves such assignments, for example to the moving averages of a batch
// normalisation. Only variables and assignments of the graph
// itself are considered, not those in functions. O(assignments * (nodes + edges)).
void DropUnreadAssignments(Graph* graph);

// Turns an assignment into a NoOp with the same control inputs.
void DropAssignment(Graph* graph, Node* assignment);

// Adds the initialiser of a variable (graph/analysis/variable_initializers.h), which assigns a constant.
absl::Status AddInitializer(Graph* graph, Node* variable, Tensor value);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_ASSIGNMENTS_H_
