// The context of a faulty rewrite: its nodes and their neighbours before and after, and the values that changed.
#ifndef PERMAFROST_TOOLS_TRANSFORM_REWRITE_SURROUNDINGS_H_
#define PERMAFROST_TOOLS_TRANSFORM_REWRITE_SURROUNDINGS_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "tools/transform/bisection.h"
#include "tools/transform/verification.h"

namespace permafrost {

// Returns the matched nodes, the nodes of `differences`, and their producers and readers, in this order; at most
// kMostNearby.
inline constexpr size_t kMostNearby = 24;
std::vector<NearbyNode> NodesNear(const Graph& before, const Graph& after, const std::vector<std::string>& matched,
                                  const std::vector<GraphDifference>& differences);

// Returns the changes of the declared outputs, and of output 0 of the first matched node that both graphs have. Empty
// if one of the graphs does not run.
std::vector<ValueChange> ChangedValues(const Graph& before, const Graph& after, const std::vector<std::string>& matched,
                                       const Verifier& verifier);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_REWRITE_SURROUNDINGS_H_
