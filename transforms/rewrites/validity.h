// For passes that do to a graph what the caller says, wise or not: whether it is still one.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_VALIDITY_H_
#define PERMAFROST_TRANSFORMS_REWRITES_VALIDITY_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

// Remembers whether a graph is valid and its shapes can be inferred. O(nodes + edges).
class ValidityGuard {
 public:
  explicit ValidityGuard(const Graph& graph);

  // InvalidArgument, with the first problems, when the graph was valid at construction and is not now: the caller of
  // the pass asked for it. A graph that was not valid to begin with may be on its way to become so.
  absl::Status Check(const Graph& graph) const;

 private:
  bool was_valid_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_VALIDITY_H_
