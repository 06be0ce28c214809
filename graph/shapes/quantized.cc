// Shape functions of the remaining quantised ops. The outputs are the codes and the two ends of their range.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

absl::Status SetWithRange(ShapeContext* context, Shape codes, const Shape& range) {
  context->set_output(0, std::move(codes));
  context->set_output(1, range);
  context->set_output(2, range);
  return absl::OkStatus();
}

}  // namespace

absl::Status QuantizedUnaryShape(ShapeContext* context) { return SetWithRange(context, context->input(0), Shape()); }

// Sets one range for the whole tensor, or one for each slice along attribute `axis`.
absl::Status QuantizeV2Shape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "axis"));
  if (axis < -1) return absl::InvalidArgumentError(absl::StrCat("attr 'axis' is ", axis, ", expected -1 or more"));
  const Shape& input = context->input(0);
  Shape range;
  if (axis >= 0) {
    if (!input.has_rank()) {
      range = Shape({kUnknownDim});
    } else {
      PF_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, input.rank()));
      range = Shape({input.dim(at)});
    }
  }
  return SetWithRange(context, input, range);
}

absl::Status QuantizedBinaryShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context->input(0), context->input(1)));
  return SetWithRange(context, std::move(shape), Shape());
}

// Inputs (concat_dim, values:N, input_mins:N, input_maxes:N).
absl::Status QuantizedConcatShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t count, IntAttr(context->node(), "N"));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> axis, KnownScalar(*context, 0));
  if (count < 1 || count > context->num_inputs()) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'N' is ", count, ", but the node has ", context->num_inputs(), " inputs"));
  }
  PF_ASSIGN_OR_RETURN(Shape codes, ConcatenatedShape(*context, 1, static_cast<int>(count), axis));
  return SetWithRange(context, std::move(codes), Shape());
}

}  // namespace permafrost::shapes
