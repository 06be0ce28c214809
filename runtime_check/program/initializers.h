// Finds the nodes that fill the tables and variables of a program, which must run before it.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_

#include <string>
#include <vector>

#include "graph/base/selection.h"
#include "graph/graph.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Whether this build has tables or variables.
inline constexpr bool kHoldsResources =
    selection::HoldsAnyOp({"HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2", "VarHandleOp"});

// Returns the names of the nodes of `graph` that fill a table or a variable of `program`, except those that the program
// runs anyway. A resource is identified by its shared name, otherwise by the name of its node. Initialisers of
// variables (VariableInitializers) that depend on a placeholder are omitted.
std::vector<std::string> InitializersOf(const Graph& graph, const Program& program);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_
