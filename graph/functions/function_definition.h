// Makes the definition of a new function from its body.
#ifndef PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_DEFINITION_H_
#define PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_DEFINITION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

// Returns a function without nodes, as a field of FunctionDefLibrary, with the types of the body's arguments and
// results and as many control outputs. FunctionLibrary::SetBody fills it. The arguments are called "arg0", "arg1", ...,
// and SetBody requires that no other node of the body has such a name.
std::string EmptyFunction(absl::string_view name, const Graph& body);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_DEFINITION_H_
