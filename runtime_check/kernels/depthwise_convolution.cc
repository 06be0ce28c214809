// DepthwiseConv2dNative and _FusedDepthwiseConv2dNative: each input channel has its own filters.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/post_ops.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/window.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct DepthwiseState : public KernelState {
  const InnerLoops* loops = nullptr;
  ImageLayout layout;
  Window window;
  int64_t batch = 0, channels = 0, multiplier = 0;
  int64_t input_part = 0, output_part = 0;  // Offsets in the scratch memory, for NCHW.
  PostOps post_ops;

  int64_t output_channels() const { return channels * multiplier; }
};

absl::Status PrepareDepthwise(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 4));
  const Shape& input = context->input_shape(0);
  const Shape& filter = context->input_shape(1);
  auto state = std::make_unique<DepthwiseState>();
  state->loops = &BestInnerLoops();
  PF_ASSIGN_OR_RETURN(state->layout, ReadImageLayout(context->node()));
  const ImageLayout& layout = state->layout;
  PF_ASSIGN_OR_RETURN(state->window, ReadWindow(context->node(), layout, {filter.dim(0), filter.dim(1)},
                                                input.dim(layout.height), input.dim(layout.width)));
  state->batch = input.dim(0);
  state->channels = input.dim(layout.channel);
  state->multiplier = filter.dim(3);
  if (filter.dim(2) != state->channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", state->channels, " channels, the filter is for ", filter.dim(2)));
  }
  const WindowAxis &y = state->window.y, &x = state->window.x;
  const Shape output = layout.ShapeOf(state->batch, y.output, x.output, state->output_channels());
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  if (context->input_type(0) != DType::kFloat) {
    context->SetState(std::move(state));
    return absl::OkStatus();
  }
  ScratchParts parts;
  PF_ASSIGN_OR_RETURN(state->post_ops, ReadPostOps(context, 2, state->output_channels(), &parts));
  if (layout.is_nchw()) {
    PF_ASSIGN_OR_RETURN(state->input_part, parts.Add(input.num_elements()));
    PF_ASSIGN_OR_RETURN(state->output_part, parts.Add(output.num_elements()));
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes `pixels` output pixels with the same taps inside the image, for several output channels per input channel.
void MultiplyChannels(const InnerLoops& loops, const DepthwiseWindow& w, int64_t multiplier, int64_t pixels,
                      const float* input, const float* filter, float* output) {
  std::fill_n(output, pixels * w.channels * multiplier, 0.f);
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t ty = 0; ty < w.taps_y; ++ty) {
      for (int64_t tx = 0; tx < w.taps_x; ++tx) {
        const float* in = input + p * w.pixel_step + ty * w.row_step + tx * w.tap_step;
        const float* f = filter + ty * w.filter_row_step + tx * w.filter_tap_step;
        float* out = output + p * w.channels * multiplier;
        if (multiplier >= loops.vector_floats) {
          for (int64_t c = 0; c < w.channels; ++c) {
            loops.add_scaled(multiplier, in[c], f + c * multiplier, out + c * multiplier);
          }
        } else {
          for (int64_t c = 0; c < w.channels; ++c) {
            for (int64_t m = 0; m < multiplier; ++m) *out++ += in[c] * *f++;
          }
        }
      }
    }
  }
}

// Computes one line of output pixels, divided where taps leave the image.
void ComputeLine(const DepthwiseState& state, const float* image, int64_t line, const float* filter, float* output) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  int64_t y_begin, y_end;
  y.TapsInside(line, &y_begin, &y_end);
  DepthwiseWindow w;
  w.channels = state.channels;
  w.taps_y = y_end - y_begin;
  w.tap_step = x.dilation * state.channels;
  w.row_step = y.dilation * x.input * state.channels;
  w.pixel_step = x.stride * state.channels;
  w.filter_tap_step = state.output_channels();
  w.filter_row_step = x.taps * state.output_channels();
  const float* row = image + (y.First(line) + y_begin * y.dilation) * x.input * state.channels;
  const float* filter_row = filter + y_begin * w.filter_row_step;
  int64_t full_begin, full_end;
  x.FullPositions(&full_begin, &full_end);
  for (int64_t column = 0; column < x.output;) {
    const int64_t pixels = column >= full_begin && column < full_end ? full_end - column : 1;
    int64_t x_begin, x_end;
    x.TapsInside(column, &x_begin, &x_end);
    w.taps_x = x_end - x_begin;
    // No pointer is computed for an empty window, since it would be outside the image.
    const bool is_empty = w.taps_x == 0 || w.taps_y == 0;
    if (is_empty) w.taps_y = w.taps_x = 0;
    const float* first = is_empty ? image : row + (x.First(column) + x_begin * x.dilation) * state.channels;
    const float* first_filter = is_empty ? filter : filter_row + x_begin * w.filter_tap_step;
    if (state.multiplier == 1) {
      state.loops->depthwise(w, pixels, first, first_filter, output);
    } else {
      MultiplyChannels(*state.loops, w, state.multiplier, pixels, first, first_filter, output);
    }
    w.taps_y = y_end - y_begin;
    output += pixels * state.output_channels();
    column += pixels;
  }
}

// Computes element by element, for types without vector loops.
template <typename T>
void ComputePlain(ComputeContext* context, const DepthwiseState& state) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const ImageStrides in(state.layout, y.input, x.input, state.channels);
  const ImageStrides out(state.layout, y.output, x.output, state.output_channels());
  const T* input = context->input<T>(0);
  const T* filter = context->input<T>(1);
  T* output = context->output<T>(0);
  context->threads().ParallelFor(state.batch * y.output * x.output, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      const int64_t column = i % x.output, line = i / x.output % y.output, image = i / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      for (int64_t o = 0; o < state.output_channels(); ++o) {
        T sum = 0;
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            sum += input[image * in.batch + (y.First(line) + ty * y.dilation) * in.y +
                         (x.First(column) + tx * x.dilation) * in.x + o / state.multiplier * in.channel] *
                   filter[(ty * x.taps + tx) * state.output_channels() + o];
          }
        }
        output[image * out.batch + line * out.y + column * out.x + o * out.channel] = sum;
      }
    }
  });
}

absl::Status ComputeDepthwise(ComputeContext* context) {
  const auto& state = context->state<DepthwiseState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  if (IsSelected(DType::kDouble) && context->input_at(0).dtype == DType::kDouble) {
    ComputePlain<double>(context, state);
    return absl::OkStatus();
  }
  const int64_t lines = state.batch * y.output;
  const float* input = context->input<float>(0);
  const float* filter = context->input<float>(1);
  float* output = context->output<float>(0);
  if (state.layout.is_nchw()) {
    float* pixels = ScratchAt(context, state.input_part);
    TransposeMatrices(context->threads(), state.batch, state.channels, y.input * x.input, input, pixels);
    input = pixels;
    output = ScratchAt(context, state.output_part);
  }
  const BoundPostOps post_ops(state.post_ops, context);
  // 16K multiplications take longer than waking a thread.
  const int64_t line_cost = x.output * state.output_channels() * y.taps * x.taps;
  context->threads().ParallelFor(lines, 1 + (16 << 10) / line_cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      float* line = output + i * x.output * state.output_channels();
      ComputeLine(state, input + i / y.output * y.input * x.input * state.channels, i % y.output, filter, line);
      if (!post_ops.is_empty()) {
        post_ops.Apply(x.output, 0, state.output_channels(), line, state.output_channels());
      }
    }
  });
  if (state.layout.is_nchw()) {
    TransposeMatrices(context->threads(), state.batch, y.output * x.output, state.output_channels(), output,
                      context->output<float>(0));
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(DepthwiseConv2dNative) {
  return Kernel(
             "output[n,y,x,i*M+m] = sum over dy,dx of input[n, y*stride+dy*dilation-pad, x*..., i] * filter[dy,dx,i,m]")
      .Types<float, double, Half, BFloat16>("T")
      .Prepare(PrepareWidened<PrepareDepthwise>)
      .Compute(ComputeWidened<ComputeDepthwise>);
}

DEFINE_KERNEL(_FusedDepthwiseConv2dNative) {
  return Kernel(
             "DepthwiseConv2dNative followed by the ops in fused_ops: a bias or a batch norm with parameters from "
             "args, then an activation")
      .Types<float, Half, BFloat16>("T")
      .Prepare(PrepareWidened<PrepareDepthwise>)
      .Compute(ComputeWidened<ComputeDepthwise>);
}

}  // namespace permafrost
