// Shape functions of image ops: resizing, cropping, decoding and box selection.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

int64_t DimOf(const Shape& shape, int i) { return shape.has_rank() ? shape.dim(i) : kUnknownDim; }

// Returns height and width from input `i`, a vector of two integers.
absl::StatusOr<Shape> SizeFromInput(const ShapeContext& context, int i) {
  PF_ASSIGN_OR_RETURN(Shape size, ShapeFromInput(context, i));
  if (!size.has_rank()) return UnknownDims(2);
  if (size.rank() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has ", size.rank(), " entries, expected height and width"));
  }
  return size;
}

absl::Status Resize(ShapeContext* context, int size_input) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const Shape size, SizeFromInput(*context, size_input));
  const Shape& images = context->input(0);
  context->set_output(0, Shape({DimOf(images, 0), size.dim(0), size.dim(1), DimOf(images, 3)}));
  return absl::OkStatus();
}

absl::Status CheckBoxes(const ShapeContext& context) {
  PF_RETURN_IF_ERROR(context.RequireRank(0, 2));
  PF_RETURN_IF_ERROR(context.RequireRank(1, 1));
  if (DimOf(context.input(0), 1) >= 0 && DimOf(context.input(0), 1) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", context.input(0).ToString(), ", expected [n,4]"));
  }
  return MergeDims(DimOf(context.input(0), 0), DimOf(context.input(1), 0), "boxes and scores").status();
}

// Returns the number of selected boxes. It is known only if the op pads its result to the limit.
absl::StatusOr<int64_t> Selected(const ShapeContext& context, absl::string_view pad_attr) {
  PF_RETURN_IF_ERROR(CheckBoxes(context));
  PF_ASSIGN_OR_RETURN(const bool pads, BoolAttr(context.node(), pad_attr));
  PF_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, KnownScalar(context, 2));
  if (limit && *limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("input 2 specifies ", *limit, " boxes, expected 0 or more"));
  }
  return pads && limit ? *limit : kUnknownDim;
}

}  // namespace

absl::Status ResizeShape(ShapeContext* context) { return Resize(context, 1); }

absl::Status QuantizedResizeShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(Resize(context, 1));
  context->set_output(1, Shape());
  context->set_output(2, Shape());
  return absl::OkStatus();
}

// Inputs (image, boxes, box_ind, crop_size).
absl::Status CropAndResizeShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_RETURN_IF_ERROR(context->RequireRank(1, 2));
  PF_RETURN_IF_ERROR(context->RequireRank(2, 1));
  PF_ASSIGN_OR_RETURN(const int64_t boxes,
                      MergeDims(DimOf(context->input(1), 0), DimOf(context->input(2), 0), "boxes and their images"));
  PF_ASSIGN_OR_RETURN(const Shape size, SizeFromInput(*context, 3));
  context->set_output(0, Shape({boxes, size.dim(0), size.dim(1), DimOf(context->input(0), 3)}));
  return absl::OkStatus();
}

absl::Status NonMaxSuppressionShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(CheckBoxes(*context));
  context->set_output(0, Shape({kUnknownDim}));
  return absl::OkStatus();
}

absl::Status NonMaxSuppressionV4Shape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t selected, Selected(*context, "pad_to_max_output_size"));
  context->set_output(0, Shape({selected}));
  context->set_output(1, Shape());
  return absl::OkStatus();
}

absl::Status NonMaxSuppressionV5Shape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t selected, Selected(*context, "pad_to_max_output_size"));
  context->set_output(0, Shape({selected}));
  context->set_output(1, Shape({selected}));
  context->set_output(2, Shape());
  return absl::OkStatus();
}

absl::Status DecodeImageShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t channels, IntAttr(context->node(), "channels"));
  if (channels < 0) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'channels' is ", channels, ", expected 0 or more"));
  }
  context->set_output(0, Shape({kUnknownDim, kUnknownDim, channels == 0 ? kUnknownDim : channels}));
  return absl::OkStatus();
}

// Inputs (images, transforms or none, output_shape or size, ...). The size is input 2, or input 1 of ScaleAndTranslate.
absl::Status ImageTransformShape(ShapeContext* context) {
  return Resize(context, context->node().op() == ops::kScaleAndTranslate ? 1 : 2);
}

absl::Status ExtractImagePatchesShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> window, PerDimension(context->node(), "ksizes", 4));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, PerDimension(context->node(), "strides", 4));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> rates, PerDimension(context->node(), "rates", 4));
  PF_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(context->node(), 4));
  PF_ASSIGN_OR_RETURN(const int64_t area, MultiplyDims(window[1], window[2]));
  PF_ASSIGN_OR_RETURN(const int64_t depth, MultiplyDims(DimOf(context->input(0), 3), area));
  const ImageLayout layout = {0, 3, {1, 2}};
  PF_ASSIGN_OR_RETURN(Shape output,
                      SlideWindows(context->input(0), layout, {window[1], window[2]}, strides, rates, padding, depth));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
