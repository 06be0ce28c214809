// The arithmetic of one node.
#ifndef PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_
#define PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// Whether the op is a convolution or a matrix product. A multiplication and an addition count as two; *flops gets what
// one run of the node takes, and stays empty where shapes are missing or the number is beyond 64 bits. `input` gives
// the shape of a data input, of unknown rank where there is none; `output` is that of output 0.
bool CountNodeFlops(const Node& node, absl::FunctionRef<Shape(int)> input, const Shape& output,
                    std::optional<uint64_t>* flops);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_NODE_FLOPS_H_
