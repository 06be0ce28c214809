// QuantizedConv2D as a product of codes. The left matrix has one row per output pixel, with the codes under the window.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/code_product.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

struct ConvolutionState : public KernelState {
  CodeProduct product;
  Window window;
  int64_t channels = 0, output_channels = 0, rows = 0;
  bool is_padded = false;  // True if a window extends past the edge of the image.
};

// Centres the windows in the image as TensorFlow does. This differs from Conv2D if pixels are left over: with a stride
// larger than the window, or in VALID padding a stride of 3 or more, where Conv2D begins at the first pixel. An odd
// pixel is left over at the end.
void CentreWindows(bool is_valid, WindowAxis* axis) {
  const int64_t missing =
      (axis->output - 1) * axis->stride + axis->taps - axis->input;  // Negative if pixels are left over.
  axis->pad_before = (missing + (is_valid ? 1 : 0)) / 2;
}

bool ReachesOver(const WindowAxis& axis) {
  int64_t begin, end;
  axis.TapsInside(0, &begin, &end);
  if (begin > 0 || end < axis.taps) return true;
  axis.TapsInside(axis.output - 1, &begin, &end);
  return begin > 0 || end < axis.taps;
}

absl::Status PrepareConvolution(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 4));
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 4));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  auto state = std::make_unique<ConvolutionState>();
  PF_ASSIGN_OR_RETURN(state->window, ReadWindow(context->node(), ImageLayout(), {filter.dim(0), filter.dim(1)},
                                                input.dim(1), input.dim(2)));
  WindowAxis &y = state->window.y, &x = state->window.x;
  if (y.dilation != 1 || x.dilation != 1) {
    return absl::UnimplementedError("attr 'dilations' is not 1, which quantised convolutions do not have");
  }
  state->channels = input.dim(3);
  state->output_channels = filter.dim(3);
  if (filter.dim(2) != state->channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", state->channels, " channels, the filter ", filter.dim(2)));
  }
  const Shape output{input.dim(0), y.output, x.output, state->output_channels};
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  SetRangeOutputShapes(context);
  if (output.num_elements() > 0) {
    state->rows = input.dim(0) * y.output * x.output;
    PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(context->node(), "padding"));
    // TensorFlow computes a signed filter with oneDNN, whose windows are those of Conv2D.
    if (context->input_type(1) == DType::kQUint8) {
      CentreWindows(padding == "VALID", &y);
      CentreWindows(padding == "VALID", &x);
    }
    state->is_padded = ReachesOver(y) || ReachesOver(x);
  }
  // The element count of the filter fits in int64, so this product does too.
  PF_ASSIGN_OR_RETURN(state->product, CodeProduct::Prepare(context, state->rows, y.taps * x.taps * state->channels,
                                                           state->output_channels, 1, state->output_channels, 1));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Writes the codes under the windows of output pixels [begin, begin + count). Codes outside the image are `outside`.
void GatherCodes(const ConvolutionState& state, const uint8_t* input, int16_t outside, int64_t begin, int64_t count,
                 int16_t* rows, uint32_t* sums) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.channels, padded = state.product.padded_depth();
  const int64_t line_size = x.taps * channels, depth = y.taps * line_size;
  int64_t column = begin % x.output, line = begin / x.output % y.output, image = begin / x.output / y.output;
  for (int64_t r = 0; r < count; ++r, rows += padded) {
    int64_t y_begin, y_end, x_begin, x_end;
    y.TapsInside(line, &y_begin, &y_end);
    x.TapsInside(column, &x_begin, &x_end);
    if (y_begin > 0 || y_end < y.taps || x_begin > 0 || x_end < x.taps) std::fill_n(rows, depth, outside);
    for (int64_t ty = y_begin; ty < y_end; ++ty) {
      const int64_t pixel = (image * y.input + y.First(line) + ty) * x.input + x.First(column) + x_begin;
      const uint8_t* from = input + pixel * channels;
      int16_t* to = rows + ty * line_size + x_begin * channels;
      for (int64_t i = 0; i < (x_end - x_begin) * channels; ++i) to[i] = from[i];
    }
    std::fill(rows + depth, rows + padded, int16_t{0});
    uint32_t sum = 0;
    for (int64_t i = 0; i < depth; ++i) sum += static_cast<uint32_t>(static_cast<int32_t>(rows[i]));
    sums[r] = sum;
    if (++column == x.output) {
      column = 0;
      if (++line == y.output) {
        line = 0;
        ++image;
      }
    }
  }
}

// Returns the range of products with codes of a signed filter. In this range 0 is exact, and a step is one of the 254
// steps from -127 to 127.
Range SignedProductRange(Range input, Range filter) {
  const float step = (input.max - input.min) / 255.f * ((filter.max - filter.min) / 254.f);
  return {step * static_cast<float>(kLowest<int32_t>), step * static_cast<float>(kHighest<int32_t>)};
}

absl::Status ComputeConvolution(ComputeContext* context) {
  const auto& state = context->state<ConvolutionState>();
  const Range input_range = RangeInput(*context, 2), filter_range = RangeInput(*context, 4);
  const bool is_signed = context->input_at(1).dtype == DType::kQInt8;
  SetRangeOutput(context, is_signed ? SignedProductRange(input_range, filter_range)
                                    : ProductRange<uint8_t, uint8_t>(input_range, filter_range));
  const int64_t zero = UnclampedCode<uint8_t>(0.f, input_range);
  // Elements outside the image represent 0, which has no 8-bit code in a range without 0. (In a range below 0,
  // TensorFlow truncates that code to 8 bits, so its padding differs from 0.)
  if (state.is_padded && std::abs(zero) > std::numeric_limits<int16_t>::max()) {
    return absl::UnimplementedError(absl::StrCat("pads an input with a range from ", input_range.min, " to ",
                                                 input_range.max, ", which is more than 128 times its width from 0"));
  }
  const int64_t outside = state.is_padded ? zero : 0;
  const auto* input = context->input_bits<uint8_t>(0);
  const auto gather = [&](int64_t first, int64_t count, int16_t* rows, uint32_t* sums) {
    GatherCodes(state, input, static_cast<int16_t>(outside), first, count, rows, sums);
  };
  state.product.Run(context, static_cast<uint32_t>(zero), is_signed ? 128 : ZeroPoint<uint8_t>(filter_range),
                    std::max<int64_t>(255, std::abs(outside)), gather, context->output_bits<int32_t>(0));
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedConv2D) {
  return Kernel("Conv2D of (input - zero point) and (filter - zero point), on codes")
      .Types<QUint8>("Tinput")
      .Types<QUint8, QInt8>("Tfilter")
      .Types<QInt32>("out_type")
      .Prepare(PrepareConvolution)
      .Compute(ComputeConvolution);
}

}  // namespace permafrost
