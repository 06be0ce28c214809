// Merges nodes that compute the same values from the same inputs.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

enum class OperandOrder {
  kAsWritten,  // Add(a, b) and Add(b, a) differ.
  kAny,        // They are equal, for Add, Mul, Maximum and other ops that are bitwise commutative.
};

// Merges nodes with equal op, device, attributes, inputs and control inputs, until no more are equal; merged inputs
// count as equal. Tensors are compared by value, a missing attribute equals its default, and `_class` is ignored. The
// first node in the file is kept. Never merged, with a miss for near matches: declared inputs and outputs,
// placeholders, ops with state, side effects or random results, ops outside the op table, and a Merge that closes a
// loop. Returns the number of removed nodes, and notes it. O(nodes + edges + bytes of attributes).
absl::StatusOr<int64_t> MergeDuplicates(Graph* graph, OperandOrder operand_order, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_
