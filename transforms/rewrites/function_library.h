// What passes need to know of GraphDef.library, which the graph keeps as bytes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_

#include "graph/graph.h"

namespace permafrost {

// True unless it is certain that no node calls a function of the library: every op is in the op table and no attribute
// names a function. O(attributes).
bool MayCallFunctions(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_LIBRARY_H_
