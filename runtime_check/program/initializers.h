// Which nodes must have run before a program does: those that fill the tables that it reads.
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

// The names of the nodes of `graph` that fill a table of `program` and are not in it (there they run anyway). A table
// is known by its shared name, else by that of its node.
std::vector<std::string> InitializersOf(const Graph& graph, const Program& program);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_INITIALIZERS_H_
