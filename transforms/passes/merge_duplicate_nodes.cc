// Merges nodes that compute the same values from the same inputs.
#include "transforms/pass.h"
#include "transforms/rewrites/duplicates.h"

namespace permafrost {
namespace {

absl::StatusOr<int64_t> Merge(Graph* graph, const NoParams&, PassContext* context) {
  return MergeDuplicates(graph, OperandOrder::kAsWritten, context);
}

}  // namespace

// Merges nodes with equal op, device, attributes, inputs and control inputs. Tensors are compared by value, a missing
// attribute equals its default, and `_class` is ignored. The first node in the file is kept.
//
//   Add(Relu(x), Relu(x))   =>   r = Relu(x); Add(r, r)
//
// Leaves unchanged declared inputs and outputs, placeholders, ops with state, side effects or random results, ops
// outside the op table, and a Merge that closes a loop.
DEFINE_PASS(merge_duplicate_nodes) {
  return Pass<NoParams>("Merges nodes that compute the same value from the same inputs.")
      .Why("Exporters repeat constants and computations; each copy costs space and time.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Merge);
}

}  // namespace permafrost
