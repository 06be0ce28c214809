// Shape functions of batch normalisation and bias ops.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {

// Inputs (x, scale, offset, mean, variance). Output y has the shape of x; the others hold one value per channel.
absl::Status FusedBatchNormShape(ShapeContext* context) {
  Shape image = context->input(0);
  if (image.has_rank() && image.rank() != 4 && image.rank() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", image.ToString(), ", expected rank 4 or 5"));
  }
  const int spatial = image.has_rank() ? image.rank() - 2 : 2;
  PF_ASSIGN_OR_RETURN(const bool is_training, BoolAttr(context->node(), "is_training"));
  int64_t channels = kUnknownDim;
  std::optional<ImageLayout> layout;
  if (image.has_rank()) {
    // The default data_format is NHWC even for rank 5.
    const bool default_layout = image.rank() == 5 && !context->node().HasAttr("data_format");
    if (default_layout) {
      layout = ImageLayout{0, 4, {1, 2, 3}};
    } else {
      PF_ASSIGN_OR_RETURN(layout, LayoutOf(context->node(), spatial));
    }
    if (layout) channels = image.dim(layout->channel);
  }
  for (int i = 1; i < (is_training ? 3 : 5); ++i) {
    PF_RETURN_IF_ERROR(context->RequireRank(i, 1));
    if (!context->input(i).has_rank()) continue;
    PF_ASSIGN_OR_RETURN(channels, MergeDims(channels, context->input(i).dim(0), absl::StrCat("channels of input ", i)));
  }
  if (layout) image.set_dim(layout->channel, channels);
  context->set_output(0, std::move(image));
  for (int i = 1; i <= 4; ++i) context->set_output(i, Shape({channels}));
  // The reserve spaces of V2 and V3 serve training on GPUs; their shapes are unspecified.
  for (int i = 5; i < context->num_outputs(); ++i) context->set_output(i, Shape::UnknownRank());
  return absl::OkStatus();
}

// Inputs (t, mean, variance, beta, gamma).
absl::Status BatchNormGlobalShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 4));
  Shape output = context->input(0).has_rank() ? context->input(0) : UnknownDims(4);
  for (int i = 1; i < 5; ++i) {
    PF_RETURN_IF_ERROR(context->RequireRank(i, 1));
    if (!context->input(i).has_rank()) continue;
    PF_ASSIGN_OR_RETURN(const int64_t channels,
                        MergeDims(output.dim(3), context->input(i).dim(0), absl::StrCat("channels of input ", i)));
    output.set_dim(3, channels);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

// Inputs (value, bias). The bias has one value per channel.
absl::Status BiasAddShape(ShapeContext* context) {
  Shape output = context->input(0);
  PF_RETURN_IF_ERROR(context->RequireRank(1, 1));
  if (output.has_rank() && context->input(1).has_rank()) {
    bool channels_first = false;
    if (context->node().op() == ops::kBiasAdd) {
      PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(context->node(), "data_format"));
      channels_first = format == "NCHW";
    }
    if (output.rank() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("input 0 has the shape ", output.ToString(), ", expected rank 2 or more"));
    }
    const int channel = channels_first ? 1 : output.rank() - 1;
    PF_ASSIGN_OR_RETURN(const int64_t channels,
                        MergeDims(output.dim(channel), context->input(1).dim(0), "channels of value and bias"));
    output.set_dim(channel, channels);
  }
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

// Gives the gradient of the bias one value per channel.
absl::Status BiasAddGradShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(context->node(), "data_format"));
  const Shape& gradient = context->input(0);
  if (gradient.has_rank() && gradient.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", gradient.ToString(), ", expected rank 2 or more"));
  }
  const int channel = format == "NCHW" ? 1 : (gradient.has_rank() ? gradient.rank() - 1 : 0);
  context->set_output(0, Shape({gradient.has_rank() ? gradient.dim(channel) : kUnknownDim}));
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
