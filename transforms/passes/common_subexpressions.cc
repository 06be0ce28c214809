// Merges repeated computations into one.
#include "transforms/pass.h"
#include "transforms/rewrites/duplicates.h"

namespace permafrost {
namespace {

absl::StatusOr<int64_t> Merge(Graph* graph, const NoParams&, PassContext* context) {
  return MergeDuplicates(graph, OperandOrder::kAny, context);
}

}  // namespace

// Merges nodes that compute the same value, as merge_duplicate_nodes does, and also treats Add, Mul, Maximum, Minimum,
// SquaredDifference, Equal, NotEqual and the logical and bitwise ops as commutative.
//
//   Sub(Mul(a, b), Mul(b, a))   =>   m = Mul(a, b); Sub(m, m)
//
// One run reaches the fixed point: nodes are compared after their inputs have been merged.
DEFINE_PASS(common_subexpressions) {
  return Pass<NoParams>("Eliminates common subexpressions.")
      .Why("Exporters repeat shape arithmetic and scales for each layer; each copy costs load time and run time.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Merge);
}

}  // namespace permafrost
