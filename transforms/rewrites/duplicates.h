// Merges nodes that compute the same from the same inputs.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

enum class OperandOrder {
  kAsWritten,  // Add(a, b) and Add(b, a) are two nodes.
  kAny,        // They are one: of Add, Mul, Maximum and the like, whose results do not depend on the order, to the bit.
};

// Merges nodes of the same op, device, attributes, inputs and control inputs, to a fixed point: inputs that are merged
// count as the same. Tensors are compared by value, a missing attribute equals its default, and `_class` is not
// compared. The first in the file stays. Stays, with a miss where it is near: declared inputs and outputs,
// placeholders, ops with state, side effects or random results, ops outside the op table, and a Merge that closes a
// loop. Returns how many nodes went, and notes it. O(nodes + edges + bytes of attributes).
absl::StatusOr<int64_t> MergeDuplicates(Graph* graph, OperandOrder operand_order, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_DUPLICATES_H_
