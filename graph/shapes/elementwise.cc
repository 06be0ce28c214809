// Shape functions of elementwise ops.
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {

absl::Status UnknownShape(ShapeContext*) { return absl::OkStatus(); }
absl::Status NoOutputs(ShapeContext*) { return absl::OkStatus(); }

// Gives output 0 the shape of input 0.
absl::Status UnchangedShape(ShapeContext* context) {
  context->set_output(0, context->input(0));
  return absl::OkStatus();
}

// Gives the outputs the shapes in the attribute output_shapes; further outputs have unknown shapes.
absl::Status ListedShapes(ShapeContext* context) {
  const AttrValue* attr = context->node().FindAttr("output_shapes");
  if (attr == nullptr) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, attr->AsShapeList());
  for (size_t i = 0; i < shapes.size(); ++i) context->set_output(static_cast<int>(i), shapes[i]);
  return absl::OkStatus();
}

// Gives each output the shape of the input with the same index.
absl::Status UnchangedShapes(ShapeContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, context->input(i));
  return absl::OkStatus();
}

absl::Status BroadcastShape(ShapeContext* context) {
  // With incompatible_shape_error=false, Equal and NotEqual return a scalar instead of failing.
  if (context->node().op() == ops::kEqual || context->node().op() == ops::kNotEqual) {
    PF_ASSIGN_OR_RETURN(const bool must_fit, BoolAttr(context->node(), "incompatible_shape_error"));
    if (!must_fit) {
      const absl::StatusOr<Shape> shape = BroadcastShapes(context->input(0), context->input(1));
      const bool known = context->input(0).IsFullyKnown() && context->input(1).IsFullyKnown();
      if (known) context->set_output(0, shape.ok() ? *shape : Shape());
      return absl::OkStatus();
    }
  }
  PF_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context->input(0), context->input(1)));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Requires that all inputs have the same shape.
absl::Status MergedShape(ShapeContext* context) {
  Shape merged = Shape::UnknownRank();
  for (int i = 0; i < context->num_inputs(); ++i) {
    PF_ASSIGN_OR_RETURN(merged, MergeShapes(merged, context->input(i)));
  }
  context->set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status ClipShape(ShapeContext* context) {
  // The bounds are scalars or have the shape of the input.
  for (int i = 1; i < 3; ++i) {
    if (!context->input(i).has_rank() || context->input(i).rank() == 0) continue;
    PF_ASSIGN_OR_RETURN(const Shape merged, MergeShapes(context->input(0), context->input(i)));
  }
  return UnchangedShape(context);
}

// Handles Select(condition, then, else): a condition of rank 0 selects the whole tensor, one of rank 1 selects rows.
absl::Status SelectShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape merged, MergeShapes(context->input(1), context->input(2)));
  const Shape& condition = context->input(0);
  if (condition.has_rank() && condition.rank() == 1 && merged.has_rank() && merged.rank() >= 1) {
    PF_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(condition.dim(0), merged.dim(0), "rows of condition and values"));
    merged.set_dim(0, rows);
  } else if (condition.has_rank() && condition.rank() > 1) {
    PF_ASSIGN_OR_RETURN(merged, MergeShapes(merged, condition));
  }
  context->set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status SelectV2Shape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const Shape values, BroadcastShapes(context->input(1), context->input(2)));
  PF_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(values, context->input(0)));
  context->set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
