// Finds the assignments that give resource variables their initial values.
#ifndef PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_
#define PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace permafrost {

// Returns the name of the initialiser of a variable, by TensorFlow's convention.
std::string VariableInitializerName(const Node& variable);

// Returns the initialisers of the variables (VarHandleOp) of a graph, in the order of the graph: for each variable the
// AssignVariableOp `<variable>/Assign`, or, if there is none, the only assignment of a Const, since nodes may have been
// renamed. O(nodes).
std::vector<Node*> VariableInitializers(const Graph& graph);

// Adds to `needed`, by node id, the initialisers that assign a Const to a variable in `needed`, and those Consts. For
// passes that remove the nodes that no output needs: no path leads from an initialiser to an output.
void KeepConstantInitializers(const Graph& graph, std::vector<bool>* needed);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_
