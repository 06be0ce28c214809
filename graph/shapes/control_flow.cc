// Shape functions of V1 control flow and of assignments.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {

// Gives all outputs the shape of the input, because any of them may forward it.
absl::Status SwitchShape(ShapeContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, context->input(0));
  return absl::OkStatus();
}

// Leaves the output unknown, because the input that closes a loop has not been visited yet.
absl::Status MergeShape(ShapeContext* context) {
  context->set_output(1, Shape());
  if (context->num_inputs() == 0) return absl::OkStatus();
  Shape agreed = context->input(0);
  for (int i = 1; i < context->num_inputs(); ++i) {
    const Shape& input = context->input(i);
    if (!agreed.has_rank() || !input.has_rank() || agreed.rank() != input.rank()) {
      agreed = Shape::UnknownRank();
      break;
    }
    for (int k = 0; k < agreed.rank(); ++k) {
      if (agreed.dim(k) != input.dim(k)) agreed.set_dim(k, kUnknownDim);
    }
  }
  context->set_output(0, std::move(agreed));
  return absl::OkStatus();
}

// Inputs (ref, value). The variable takes the shape of the value.
absl::Status AssignShape(ShapeContext* context) {
  const bool replaces = context->node().op() == ops::kAssign;
  context->set_output(0, context->input(replaces ? 1 : 0));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
