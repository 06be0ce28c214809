// Counts the arithmetic operations of a node.
#ifndef PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_
#define PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// Returns true if the op is a convolution or a matrix product. Sets *flops to the operations of one run of the node (a
// multiplication and an addition count as two), or leaves it empty if shapes are unknown or the number exceeds 64 bits.
// `input` returns the shape of a data input, of unknown rank if there is no such input; `output` is the shape of output
// 0.
bool CountNodeFlops(const Node& node, absl::FunctionRef<Shape(int)> input, const Shape& output,
                    std::optional<uint64_t>* flops);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_
