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

// Sorts the nodes so that each one follows the nodes that it reads, by data or control edges. Only the order changes. A
// Merge follows one of the nodes that it reads, which allows loops.
//
//   y = Relu(x); x = Placeholder()   =>   x = Placeholder(); y = Relu(x)
//
// Leaves a graph unchanged if it is already sorted. A cycle that is not a loop is an error that lists its nodes.
DEFINE_PASS(sort_by_execution_order) {
  return Pass<Params>("Sorts the nodes topologically.")
      .Why(
          "A simple runtime can run the nodes in file order, and a file is easier to read if inputs precede their "
          "readers.")
      .Param("order", &Params::order,
             "Order of the nodes that are ready at the same time. stable: file order; original: last in, first out, as "
             "in the original tool.")
      .Numerics(Exact())
      .Run(Sort);
}

}  // namespace permafrost
