// Shape functions of convolutions.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {
namespace {

int64_t DimOf(const Shape& shape, int i) { return shape.has_rank() ? shape.dim(i) : kUnknownDim; }

// Returns a dilation attribute, or ones if the op has none (quantised and fused ops).
absl::StatusOr<std::vector<int64_t>> DilationsOf(const Node& node, int rank) {
  absl::StatusOr<std::vector<int64_t>> dilations = PerDimension(node, "dilations", rank);
  if (absl::IsNotFound(dilations.status())) return std::vector<int64_t>(rank, 1);
  return dilations;
}

absl::Status RequireUnit(const std::vector<int64_t>& values, const ImageLayout& layout, absl::string_view attr) {
  if (values[layout.batch] == 1 && values[layout.channel] == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attr '", attr, "' has a value other than 1 for the batch or the channels"));
}

// Checks the channels of input and filter. With grouped convolutions the filter has fewer input channels.
absl::Status CheckChannels(int64_t input, int64_t filter) {
  if (input < 0 || filter < 0) return absl::OkStatus();
  if (filter > 0 && input % filter == 0 && (input > 0 || filter == 0)) return absl::OkStatus();
  if (input == filter) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the input has ", input, " channels, but the filter expects ", filter));
}

// Returns the shape of the convolution of `input`, which may have been padded, with input 1 of the node.
absl::StatusOr<Shape> Convolve(const ShapeContext& context, const Shape& input, int spatial, bool depthwise) {
  const Node& node = context.node();
  const int rank = spatial + 2;
  if (input.has_rank() && input.rank() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", input.ToString(), ", expected rank ", rank));
  }
  PF_RETURN_IF_ERROR(context.RequireRank(1, rank));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, PerDimension(node, "strides", rank));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, DilationsOf(node, rank));
  PF_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(node, rank));
  PF_ASSIGN_OR_RETURN(const std::optional<ImageLayout> layout, LayoutOf(node, spatial));
  if (!layout) return UnknownDims(rank);
  PF_RETURN_IF_ERROR(RequireUnit(strides, *layout, "strides"));
  PF_RETURN_IF_ERROR(RequireUnit(dilations, *layout, "dilations"));
  const Shape& filter = context.input(1);
  const int64_t in_channels = DimOf(input, layout->channel);
  int64_t out_channels = DimOf(filter, rank - 1);
  if (depthwise) {
    PF_ASSIGN_OR_RETURN(const int64_t channels,
                        MergeDims(in_channels, DimOf(filter, rank - 2), "channels of input and filter"));
    PF_ASSIGN_OR_RETURN(out_channels, MultiplyDims(channels, out_channels));
  } else {
    PF_RETURN_IF_ERROR(CheckChannels(in_channels, DimOf(filter, rank - 2)));
  }
  std::vector<int64_t> window(spatial);
  for (int k = 0; k < spatial; ++k) window[k] = DimOf(filter, k);
  return SlideWindows(input, *layout, window, strides, dilations, padding, out_channels);
}

absl::Status Convolution(ShapeContext* context, int spatial, bool depthwise) {
  PF_ASSIGN_OR_RETURN(Shape output, Convolve(*context, context->input(0), spatial, depthwise));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

// Sets the shapes of the range outputs of a quantised op.
absl::Status AddRange(ShapeContext* context, const Shape& range) {
  context->set_output(1, range);
  context->set_output(2, range);
  return absl::OkStatus();
}

// Returns the shape of `input` padded by the [rank,2] integers of input i.
absl::StatusOr<Shape> PaddedBy(const ShapeContext& context, const Shape& input, int i) {
  if (!input.has_rank()) return input;
  const KnownIntegers* paddings = AllIntegers(context, i);
  if (paddings == nullptr) return UnknownDims(input.rank());
  if (paddings->elements.size() != 2 * static_cast<size_t>(input.rank())) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has the shape ", paddings->shape.ToString(), ", expected [", input.rank(), ",2]"));
  }
  Shape output = input;
  for (int k = 0; k < input.rank(); ++k) {
    int64_t dim = input.dim(k);
    for (const int64_t extra : {paddings->elements[2 * k], paddings->elements[2 * k + 1]}) {
      if (extra < 0) {
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the value ", extra, ", expected 0 or more"));
      }
      PF_ASSIGN_OR_RETURN(dim, AddDims(dim, extra));
    }
    output.set_dim(k, dim);
  }
  return output;
}

// Sets the shape of a fused convolution. The filter follows the paddings (and the size), so its position varies.
absl::Status FusedConvolution(ShapeContext* context, const Shape& padded, int filter_input) {
  const Node& node = context->node();
  PF_RETURN_IF_ERROR(context->RequireRank(filter_input, 4));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, PerDimension(node, "strides", 4));
  PF_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(node, 4));
  const ImageLayout layout = {0, 3, {1, 2}};
  const Shape& filter = context->input(filter_input);
  PF_RETURN_IF_ERROR(CheckChannels(DimOf(padded, 3), DimOf(filter, 2)));
  PF_ASSIGN_OR_RETURN(Shape output, SlideWindows(padded, layout, {DimOf(filter, 0), DimOf(filter, 1)}, strides,
                                                 std::vector<int64_t>(4, 1), padding, DimOf(filter, 3)));
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

}  // namespace

absl::Status Conv2DShape(ShapeContext* context) { return Convolution(context, 2, /*depthwise=*/false); }
absl::Status Conv3DShape(ShapeContext* context) { return Convolution(context, 3, /*depthwise=*/false); }
absl::Status DepthwiseConv2dShape(ShapeContext* context) { return Convolution(context, 2, /*depthwise=*/true); }

absl::Status QuantizedConv2DShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(Conv2DShape(context));
  return AddRange(context, Shape());
}

absl::Status QuantizedDepthwiseConv2DShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(DepthwiseConv2dShape(context));
  return AddRange(context, Shape());
}

// Reads the size of the result from input 0, because several sizes have the same gradient.
absl::Status Conv2DBackpropInputShape(ShapeContext* context) {
  const int rank = context->node().op() == ops::kConv3DBackpropInputV2 ? 5 : 4;
  PF_ASSIGN_OR_RETURN(Shape sizes, ShapeFromInput(*context, 0));
  if (sizes.has_rank() && sizes.rank() == 2 && rank == 4 && context->input(2).has_rank()) {
    // Input 0 holds only height and width. The batch size is that of the gradient, the channels are those of the
    // filter.
    PF_RETURN_IF_ERROR(context->RequireRank(2, rank));
    PF_RETURN_IF_ERROR(context->RequireRank(1, rank));
    PF_ASSIGN_OR_RETURN(const std::optional<ImageLayout> layout, LayoutOf(context->node(), 2));
    if (!layout) return absl::OkStatus();
    Shape full = UnknownDims(rank);
    full.set_dim(layout->batch, context->input(2).dim(layout->batch));
    full.set_dim(layout->channel, DimOf(context->input(1), 2));
    for (int k = 0; k < 2; ++k) full.set_dim(layout->spatial[k], sizes.dim(k));
    sizes = std::move(full);
  }
  if (sizes.has_rank() && sizes.rank() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("input 0 has ", sizes.rank(), " entries, expected ", rank));
  }
  context->set_output(0, sizes.has_rank() ? std::move(sizes) : UnknownDims(rank));
  return absl::OkStatus();
}

absl::Status Conv2DBackpropFilterShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(Shape sizes, ShapeFromInput(*context, 1));
  context->set_output(0, sizes.has_rank() ? std::move(sizes) : UnknownDims(4));
  return absl::OkStatus();
}

// Inputs (input, paddings, filter).
absl::Status FusedPadConv2DShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const Shape padded, PaddedBy(*context, context->input(0), 1));
  return FusedConvolution(context, padded, 2);
}

// Inputs (input, size, paddings, filter). Resizes, then pads.
absl::Status FusedResizeAndPadConv2DShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  PF_ASSIGN_OR_RETURN(const Shape size, ShapeFromInput(*context, 1));
  Shape resized = context->input(0).has_rank() ? context->input(0) : UnknownDims(4);
  for (int k = 0; k < 2; ++k) resized.set_dim(1 + k, size.has_rank() && size.rank() == 2 ? size.dim(k) : kUnknownDim);
  PF_ASSIGN_OR_RETURN(const Shape padded, PaddedBy(*context, resized, 2));
  return FusedConvolution(context, padded, 3);
}

}  // namespace permafrost::shapes
