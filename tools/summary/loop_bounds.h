// Proves that loops end after a number of iterations that does not depend on the values of inputs.
#ifndef PERMAFROST_TOOLS_SUMMARY_LOOP_BOUNDS_H_
#define PERMAFROST_TOOLS_SUMMARY_LOOP_BOUNDS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/functions/function.h"
#include "graph/graph.h"

namespace permafrost {

// Returns whether the op stands for a loop: While and the like, For, or LoopCond for a loop of V1 control flow.
bool IsLoopOp(absl::string_view op);

// Returns why no bound of a loop can be proven, or an empty string if it has one. The proof is a counter: an integer
// that every iteration changes by a constant, and that the condition compares with a limit. The limit follows from
// constants and from the sizes of tensors. Everything else that the condition demands can only end the loop earlier.
// REQUIRES: IsLoopOp(node.op().name()). O(nodes of the loop).
std::string WhyUnbounded(const Node& node, const FunctionLibrary& library);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_LOOP_BOUNDS_H_
