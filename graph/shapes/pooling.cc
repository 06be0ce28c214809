// Shape functions of pooling ops.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

// Treats all dimensions as spatial, because the window may also cover batch or channels.
absl::Status Pool(ShapeContext* context, int rank, const std::vector<int64_t>& window,
                  const std::vector<int64_t>& strides) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, rank));
  PF_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(context->node(), rank));
  PF_ASSIGN_OR_RETURN(const std::optional<ImageLayout> layout, LayoutOf(context->node(), rank - 2));
  const Shape& input = context->input(0);
  Shape output = UnknownDims(rank);
  if (layout && input.has_rank()) {
    for (int i = 0; i < rank; ++i) {
      PF_ASSIGN_OR_RETURN(const int64_t count, WindowCount(input.dim(i), window[i], 1, strides[i], padding, i));
      output.set_dim(i, count);
    }
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status PoolByAttrs(ShapeContext* context, int rank) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> window, PerDimension(context->node(), "ksize", rank));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, PerDimension(context->node(), "strides", rank));
  return Pool(context, rank, window, strides);
}

}  // namespace

absl::Status PoolShape(ShapeContext* context) { return PoolByAttrs(context, 4); }
absl::Status Pool3DShape(ShapeContext* context) { return PoolByAttrs(context, 5); }

// Reads window and strides from the inputs.
absl::Status MaxPoolV2Shape(ShapeContext* context) {
  const KnownIntegers *window = AllIntegers(*context, 1), *strides = AllIntegers(*context, 2);
  if (window == nullptr || strides == nullptr) {
    context->set_output(0, UnknownDims(4));
    return absl::OkStatus();
  }
  for (const KnownIntegers* vector : {window, strides}) {
    if (vector->elements.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("window or strides have the shape ", vector->shape.ToString(), ", expected [4]"));
    }
    for (const int64_t value : vector->elements) {
      if (value < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("window or strides have the value ", value, ", expected 1 or more"));
      }
    }
  }
  return Pool(context, 4, window->elements, strides->elements);
}

absl::Status MaxPoolWithArgmaxShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(PoolShape(context));
  context->set_output(1, context->outputs()[0]);
  return absl::OkStatus();
}

absl::Status QuantizedPoolShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(PoolShape(context));
  context->set_output(1, Shape());
  context->set_output(2, Shape());
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
