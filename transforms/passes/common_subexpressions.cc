// Merges repeated computations into one.
#include "transforms/pass.h"
#include "transforms/rewrites/duplicates.h"

namespace permafrost {
namespace {

absl::StatusOr<int64_t> Merge(Graph* graph, const NoParams&, PassContext* context) {
  return MergeDuplicates(graph, OperandOrder::kAny, context);
}

}  // namespace

// Computes once what the graph computes several times: merge_duplicate_nodes, for which also the order of the operands
// of Add, Mul, Maximum, Minimum, SquaredDifference, Equal, NotEqual and the logical and bitwise ops means nothing.
//
//   Sub(Mul(a, b), Mul(b, a))   =>   m = Mul(a, b); Sub(m, m)
//
// One run reaches the fixed point: nodes whose inputs are merged are compared after their inputs.
DEFINE_PASS(common_subexpressions) {
  return Pass<NoParams>("Computes once what the graph computes several times.")
      .Why(
          "Exporters write the same shape arithmetic and scales again for each layer; each copy costs a node to load "
          "and to run.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Merge);
}

}  // namespace permafrost
