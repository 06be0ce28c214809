// Sorts the nodes topologically.
#include <algorithm>

#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  std::string order = "stable";
};

absl::StatusOr<int64_t> Sort(Graph* graph, const Params& params, PassContext* context) {
  if (params.order != "stable" && params.order != "original") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'order': found '", params.order, "', expected stable or original"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order,
                      params.order == "stable" ? StableTopologicalOrder(*graph) : StackTopologicalOrder(*graph));
  int64_t moved = 0;
  const Node* first_moved = nullptr;
  Node* there = graph->first();
  for (Node* node : order) {
    if (node != there && ++moved == 1) first_moved = node;
    there = there->next();
  }
  // One rewrite: a partial reordering is neither the old nor the new order.
  if (moved == 0 || !context->AllowRewrite(*first_moved)) return 0;
  graph->SetOrder(order);
  context->Note(absl::StrCat(moved, " of ", order.size(), " nodes have another place"));
  return moved;
}

}  // namespace

// Sorts the nodes so that each comes after the nodes it reads, by data or by control input. Nothing but the order
// changes. A Merge comes after one of the nodes it reads, as loops need.
//
//   y = Relu(x); x = Placeholder()   =>   x = Placeholder(); y = Relu(x)
//
// Left alone when the nodes are in such an order already. A cycle that is no loop is an error that names it.
DEFINE_PASS(sort_by_execution_order) {
  return Pass<Params>("Sorts the nodes so that each comes after the nodes it reads.")
      .Why("A simple runtime may run the nodes as they come, and a reader finds what a node reads above it.")
      .Param("order", &Params::order,
             "stable: of the nodes that could be next, the one that comes first in the file; original: the order of "
             "the original tool, in which the nodes that could be next form a stack.")
      .Numerics(Exact())
      .Run(Sort);
}

}  // namespace permafrost
