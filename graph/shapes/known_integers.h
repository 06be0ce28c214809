// The small integer tensors of a graph that follow from its shapes.
#ifndef PERMAFROST_GRAPH_SHAPES_KNOWN_INTEGERS_H_
#define PERMAFROST_GRAPH_SHAPES_KNOWN_INTEGERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

struct ShapesAndIntegers {
  ShapeMap shapes;
  // Null for a tensor of which no element is known. Valid as long as this.
  std::unique_ptr<const ValueSource> integers;
};

// InferShapes, and what it finds of int32 and int64 tensors on the way: a dimension that is known is known behind a
// StridedSlice too, even where the other dimensions are not.
absl::StatusOr<ShapesAndIntegers> InferShapesAndIntegers(const Graph& graph, const ShapeInferenceOptions& options = {});

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_KNOWN_INTEGERS_H_
