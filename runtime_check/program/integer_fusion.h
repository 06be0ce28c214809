// Fuses quantised operators: a group of float ops between UniformDequantize and UniformQuantize nodes becomes one node
// that computes with codes.
//
//   Conv2D(UniformDequantize(x), UniformDequantize(w)) -> BiasAdd(UniformDequantize(b)) -> Relu -> UniformQuantize
//   => _IntegerConv2D(x, w, b)
//
// Only marked operators are fused (graph/analysis/uniform_quantization.h), and every marked operator is: one whose
// float ops have no integer form is an error, because computing it in float would give other results without notice.
// Float values inside of a group that have other readers are still computed for them.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_INTEGER_FUSION_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_INTEGER_FUSION_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "graph/base/selection.h"
#include "graph/graph.h"

namespace permafrost {

inline constexpr bool kHoldsQuantizedOperators = selection::HoldsAnyOp({"UniformQuantize", "UniformDequantize"});

// Returns whether the graph has marked operators.
bool HasQuantizedOperators(const Graph& graph);

// Fuses all marked operators for which `is_needed` (by node id) is set. The node that ends an operator keeps its name
// and becomes the integer node. Values in `fed` end a group as inputs of the graph do. Returns
// FailedPrecondition with a list of the nodes that have no integer form, and the reasons.
absl::Status FuseQuantizedOperators(const std::vector<bool>& is_needed, const absl::flat_hash_set<TensorRef>& fed,
                                    Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_INTEGER_FUSION_H_
