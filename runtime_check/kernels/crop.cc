// CropAndResize: crops boxes from images and resizes them to one size.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace {

// Larger positions are not exact in float.
constexpr int64_t kLargestSide = 1 << 24;

struct CropState : KernelState {
  int64_t batch = 0, height = 0, width = 0, channels = 0;  // Shape of the input.
  int64_t crop_height = 0, crop_width = 0;
  bool is_nearest = false;
  float outside = 0;
};

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& image = context->input_shape(0);
  const Shape& boxes = context->input_shape(1);
  const Shape& numbers = context->input_shape(2);
  if (boxes.rank() != 2 || boxes.dim(1) != 4 || numbers.rank() != 1 || numbers.dim(0) != boxes.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("'boxes' has the shape ", boxes.ToString(), " and 'box_ind' ",
                                                   numbers.ToString(), ", expected [n,4] and [n]"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 3));
  if (size.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("'crop_size' has ", size.size(), " values, expected 2"));
  }
  for (const int64_t side : {size[0], size[1], image.dim(1), image.dim(2)}) {
    if (side < 1 || side > kLargestSide) {
      return absl::InvalidArgumentError(absl::StrCat("cannot resize boxes of ", image.dim(1), "x", image.dim(2),
                                                     " pixels to ", size[0], "x", size[1]));
    }
  }
  auto state = std::make_unique<CropState>();
  PF_ASSIGN_OR_RETURN(const std::string method, StringAttr(context->node(), "method"));
  if (method != "bilinear" && method != "nearest") {
    return absl::InvalidArgumentError(absl::StrCat("method is '", method, "', expected 'bilinear' or 'nearest'"));
  }
  state->is_nearest = method == "nearest";
  PF_ASSIGN_OR_RETURN(state->outside, FloatAttr(context->node(), "extrapolation_value"));
  state->batch = image.dim(0);
  state->height = image.dim(1);
  state->width = image.dim(2);
  state->channels = image.dim(3);
  state->crop_height = size[0];
  state->crop_width = size[1];
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, Shape({boxes.dim(0), size[0], size[1], image.dim(3)}));
}

// Returns the position in the image of position i of the crop, from 0 to `input` - 1 if it is inside the image.
float Position(float first, float last, int64_t input, int64_t crop, int64_t i) {
  const auto span = static_cast<float>(input - 1);
  if (crop == 1) return 0.5f * (first + last) * span;
  return first * span + static_cast<float>(i) * ((last - first) * span / static_cast<float>(crop - 1));
}

// Sets the tap. Returns false for a position outside the image or NaN.
bool FindTap(float position, int64_t input, bool is_nearest, Tap* tap) {
  if (!(position >= 0 && position <= static_cast<float>(input - 1))) return false;
  if (is_nearest) {
    tap->lower = tap->upper = static_cast<int64_t>(std::round(position));
    tap->fraction = 0;
    return true;
  }
  tap->lower = static_cast<int64_t>(std::floor(position));
  tap->upper = static_cast<int64_t>(std::ceil(position));
  tap->fraction = position - static_cast<float>(tap->lower);
  return true;
}

template <typename T>
void CropLine(const CropState& state, const T* image, const float* box, int64_t line, float* out) {
  const int64_t row = state.width * state.channels;
  Tap y;
  if (!FindTap(Position(box[0], box[2], state.height, state.crop_height, line), state.height, state.is_nearest, &y)) {
    std::fill_n(out, state.crop_width * state.channels, state.outside);
    return;
  }
  for (int64_t column = 0; column < state.crop_width; ++column, out += state.channels) {
    Tap x;
    if (FindTap(Position(box[1], box[3], state.width, state.crop_width, column), state.width, state.is_nearest, &x)) {
      InterpolateLine(image + y.lower * row, image + y.upper * row, y.fraction, absl::MakeConstSpan(&x, 1),
                      state.channels, out);
    } else {
      std::fill_n(out, state.channels, state.outside);
    }
  }
}

absl::Status Compute(ComputeContext* context) {
  const auto& state = context->state<CropState>();
  const float* boxes = context->input<float>(1);
  const int32_t* numbers = context->input<int32_t>(2);
  const int64_t count = context->input_shape(2).dim(0);
  for (int64_t i = 0; i < count; ++i) {
    if (numbers[i] < 0 || numbers[i] >= state.batch) {
      return absl::InvalidArgumentError(absl::StrCat("'box_ind' has ", numbers[i], " at element ", i,
                                                     ", expected a value in [0, ", state.batch, ")"));
    }
  }
  float* output = context->output<float>(0);
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const int64_t line_elements = state.crop_width * state.channels;
  DispatchOn<float, double, Half, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>(
      context->input_at(0).dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* images = context->input<T>(0);
        context->threads().ParallelFor(
            count * state.crop_height, 1 + (8 << 10) / line_elements, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const int64_t box = i / state.crop_height;
                CropLine(state, images + numbers[box] * state.height * state.width * state.channels, boxes + box * 4,
                         i % state.crop_height, output + i * line_elements);
              }
            });
      });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(CropAndResize) {
  return Kernel("the boxes cropped from the images and resized; extrapolation_value outside the image")
      .Types<float, double, Half, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
