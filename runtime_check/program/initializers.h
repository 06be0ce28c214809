// Finds the nodes that fill the tables of a program, which must run before it.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_

#include <string>
#include <vector>

#include "graph/base/selection.h"
#include "graph/graph.h"
#include "runtime_check/program/program.h"

namespace permafrost {

inline constexpr bool kHoldsTables =
    selection::HoldsAnyOp({"HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2"});

// Returns the names of the nodes of `graph` that fill a table of `program`, except those that the program runs anyway.
// A table is identified by its shared name, otherwise by the name of its node.
std::vector<std::string> InitializersOf(const Graph& graph, const Program& program);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_
