// Computes the positions of the pixels of a resized image in the original.
#include "runtime_check/kernels/sampling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {

float SamplingScale(int64_t input, int64_t output, bool align_corners) {
  return align_corners && output > 1 ? (input - 1) / static_cast<float>(output - 1)
                                     : input / static_cast<float>(output);
}

absl::StatusOr<Resizing> ReadResizing(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 1));
  if (size.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("input 1 (size) has ", size.size(), " values, expected 2"));
  }
  constexpr int64_t kLargestSide = 1 << 24;
  for (const int64_t side : {size[0], size[1], input.dim(1), input.dim(2)}) {
    if (side < 1 || side > kLargestSide) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot resize ", input.dim(1), "x", input.dim(2), " pixels to ", size[0], "x", size[1]));
    }
  }
  Resizing resizing;
  resizing.height = size[0];
  resizing.width = size[1];
  PF_ASSIGN_OR_RETURN(resizing.align_corners, BoolAttr(context->node(), "align_corners"));
  PF_ASSIGN_OR_RETURN(resizing.half_pixel_centers, BoolAttr(context->node(), "half_pixel_centers"));
  if (resizing.align_corners && resizing.half_pixel_centers) {
    return absl::InvalidArgumentError("attrs 'align_corners' and 'half_pixel_centers' exclude each other");
  }
  const Shape output{input.dim(0), size[0], size[1], input.dim(3)};
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  resizing.is_empty = output.num_elements() == 0;
  return resizing;
}

std::vector<Tap> NearestTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers) {
  const float scale = SamplingScale(input, output, align_corners);
  std::vector<Tap> taps(output);
  for (int64_t i = 0; i < output; ++i) {
    const float position = half_pixel_centers ? (i + 0.5f) * scale : i * scale;
    const auto nearest = static_cast<int64_t>(align_corners ? std::round(position) : std::floor(position));
    taps[i].lower = taps[i].upper = std::clamp<int64_t>(nearest, 0, input - 1);
    taps[i].fraction = 0;
  }
  return taps;
}

std::vector<Tap> BilinearTaps(int64_t input, int64_t output, bool align_corners, bool half_pixel_centers) {
  const float scale = SamplingScale(input, output, align_corners);
  std::vector<Tap> taps(output);
  for (int64_t i = 0; i < output; ++i) {
    const float position = half_pixel_centers ? (i + 0.5f) * scale - 0.5f : i * scale;
    const float floor = std::floor(position);
    taps[i].lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, input - 1);
    taps[i].upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(position)), 0, input - 1);
    taps[i].fraction = position - floor;
  }
  return taps;
}

}  // namespace permafrost
