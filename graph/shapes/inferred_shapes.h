// The attribute with shapes that shape inference cannot find in the graph of a node alone.
#ifndef PERMAFROST_GRAPH_SHAPES_INFERRED_SHAPES_H_
#define PERMAFROST_GRAPH_SHAPES_INFERRED_SHAPES_H_

#include "absl/strings/string_view.h"

namespace permafrost {

// One shape for each output, on an _Arg or on a node that calls functions: the callers and the bodies determine them.
// Set by transforms/rewrites/function_tree.h, read by InferShapes. Passes that change the shape of a value that enters
// or leaves a function must infer them again.
inline constexpr absl::string_view kInferredShapesAttr = "_inferred_shapes";

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_INFERRED_SHAPES_H_
