// Finds the assignments that give resource variables their initial values, and the nodes that fill tables.
#ifndef PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_
#define PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/op.h"

namespace permafrost {

// Returns the name of the initialiser of a variable, by TensorFlow's convention.
std::string VariableInitializerName(const Node& variable);

// Returns the initialisers of the variables (VarHandleOp) of a graph, in the order of the graph. An initialiser is an
// assignment on which no declared output depends. If a variable has several: the one called `<variable>/Assign`, else
// the only one of a Const, else the only one of a Const without control inputs and readers, else none. So they are
// found after nodes were renamed, too. O(nodes).
std::vector<Node*> VariableInitializers(const Graph& graph);

// True for a table that nodes of FillsTable fill.
bool IsTable(Op op);
// True for an op that fills the table in its input 0 from its other inputs.
bool FillsTable(Op op);

// Returns whether functions of the graph may refer to the variable or table of a node by name. True for a resource
// whose name occurs in the library. O(bytes of the library).
bool FunctionsMayUse(const Graph& graph, const Node& resource);

// Adds to `needed`, by node id, the initialisers that assign a Const to a variable in `needed`, those that fill a table
// in `needed` from Consts, and those Consts; likewise for resources that functions may use. For passes that remove the
// nodes that no output needs: no path leads from an initialiser to an output.
void KeepConstantInitializers(const Graph& graph, std::vector<bool>* needed);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_VARIABLE_INITIALIZERS_H_
