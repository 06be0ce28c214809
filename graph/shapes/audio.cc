// Shape functions of audio ops.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/shapes/dims.h"
#include "graph/shapes/shape_functions.h"

namespace permafrost::shapes {

// Maps (samples, channels) to (channels, windows, frequencies).
absl::Status AudioSpectrogramShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 2));
  PF_ASSIGN_OR_RETURN(const int64_t window, IntAttr(context->node(), "window_size"));
  PF_ASSIGN_OR_RETURN(const int64_t stride, IntAttr(context->node(), "stride"));
  if (window < 2 || window > INT32_MAX || stride < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'window_size' is ", window, " and 'stride' is ", stride, ", expected at least 2 and 1"));
  }
  const Shape& input = context->input(0);
  const int64_t samples = input.has_rank() ? input.dim(0) : kUnknownDim;
  int64_t windows = kUnknownDim;
  if (samples >= 0) windows = samples < window ? 0 : 1 + (samples - window) / stride;
  int64_t size = 1;  // The Fourier transform pads to the next power of two.
  while (size < window) size *= 2;
  context->set_output(0, Shape({input.has_rank() ? input.dim(1) : kUnknownDim, windows, 1 + size / 2}));
  return absl::OkStatus();
}

absl::Status MfccShape(ShapeContext* context) {
  PF_RETURN_IF_ERROR(context->RequireRank(0, 3));
  PF_ASSIGN_OR_RETURN(const int64_t count, IntAttr(context->node(), "dct_coefficient_count"));
  if (count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'dct_coefficient_count' is ", count, ", expected 1 or more"));
  }
  Shape output = context->input(0).has_rank() ? context->input(0) : UnknownDims(3);
  output.set_dim(2, count);
  context->set_output(0, std::move(output));
  return absl::OkStatus();
}

absl::Status DecodeWavShape(ShapeContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t channels, IntAttr(context->node(), "desired_channels"));
  PF_ASSIGN_OR_RETURN(const int64_t samples, IntAttr(context->node(), "desired_samples"));
  context->set_output(0, Shape({samples < 0 ? kUnknownDim : samples, channels < 0 ? kUnknownDim : channels}));
  context->set_output(1, Shape());
  return absl::OkStatus();
}

}  // namespace permafrost::shapes
