// Declares the shape functions named in ops.def and named_ops.def, generated from their rows. They are defined by op
// family in graph/shapes/<family>.cc. A row that names an undefined function causes a link error.
#ifndef PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
#define PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_

#include "absl/status/status.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost::shapes {

#define OP(name, signature, attributes, traits, shape) absl::Status shape(ShapeContext* context);
#include "graph/ops/named_ops.def"
#include "graph/ops/ops.def"
#undef OP

}  // namespace permafrost::shapes

#endif  // PERMAFROST_GRAPH_SHAPES_SHAPE_FUNCTIONS_H_
