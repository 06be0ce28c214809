// The shape functions that ops.def names, one declaration each, generated from its rows. They are defined by op family
// in graph/shapes/<family>.cc; a row that names a function nobody defines is a link error.
#ifndef PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
#define PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_

#include "absl/status/status.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost::shapes {

#define OP(name, signature, attributes, traits, shape) absl::Status shape(ShapeContext* context);
#include "graph/ops/ops.def"
#undef OP

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
