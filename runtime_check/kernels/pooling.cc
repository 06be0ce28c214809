// AvgPool and MaxPool. The window counts only the pixels inside the image.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "graph/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

struct PoolingState : public KernelState {
  ImageLayout layout;
  Window window;
  int64_t batch = 0, channels = 0;
  int64_t input_part = 0, output_part = 0;  // Of the scratch memory, for NCHW.
};

absl::Status PreparePooling(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<PoolingState>();
  PF_ASSIGN_OR_RETURN(state->layout, ReadImageLayout(context->node()));
  const ImageLayout& layout = state->layout;
  PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(context->node(), layout));
  PF_ASSIGN_OR_RETURN(state->window,
                      ReadWindow(context->node(), layout, kernel, input.dim(layout.height), input.dim(layout.width)));
  if (state->window.y.dilation != 1 || state->window.x.dilation != 1) {
    return absl::InvalidArgumentError("attr 'dilations' is not 1, which a pooling does not have");
  }
  state->batch = input.dim(0);
  state->channels = input.dim(layout.channel);
  const Shape output = layout.ShapeOf(state->batch, state->window.y.output, state->window.x.output, state->channels);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  if (layout.is_nchw()) {
    ScratchParts parts;
    PF_ASSIGN_OR_RETURN(state->input_part, parts.Add(input.num_elements()));
    PF_ASSIGN_OR_RETURN(state->output_part, parts.Add(output.num_elements()));
    parts.Request(context);
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Accumulates all pixels of each window with combine(channels, pixel, output), then calls finish(pixels, output).
template <typename Combine, typename Finish>
void Pool(ComputeContext* context, float initial, Combine combine, Finish finish) {
  const auto& state = context->state<PoolingState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.channels;
  if (context->output_shape(0).num_elements() == 0) return;
  const float* input = context->input<float>(0);
  float* output = context->output<float>(0);
  if (state.layout.is_nchw()) {
    float* pixels = ScratchAt(context, state.input_part);
    TransposeMatrices(context->threads(), state.batch, channels, y.input * x.input, input, pixels);
    input = pixels;
    output = ScratchAt(context, state.output_part);
  }
  const int64_t line_cost = x.output * channels * std::min(y.taps, y.input) * std::min(x.taps, x.input);
  context->threads().ParallelFor(state.batch * y.output, 1 + (16 << 10) / std::max<int64_t>(line_cost, 1),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const float* image = input + i / y.output * y.input * x.input * channels;
                                     int64_t y_begin, y_end, x_begin, x_end;
                                     y.TapsInside(i % y.output, &y_begin, &y_end);
                                     for (int64_t column = 0; column < x.output; ++column) {
                                       float* to = output + (i * x.output + column) * channels;
                                       std::fill_n(to, channels, initial);
                                       x.TapsInside(column, &x_begin, &x_end);
                                       for (int64_t ty = y_begin; ty < y_end; ++ty) {
                                         const float* line = image + (y.First(i % y.output) + ty) * x.input * channels;
                                         for (int64_t tx = x_begin; tx < x_end; ++tx) {
                                           combine(channels, line + (x.First(column) + tx) * channels, to);
                                         }
                                       }
                                       finish((y_end - y_begin) * (x_end - x_begin), to);
                                     }
                                   }
                                 });
  if (state.layout.is_nchw()) {
    TransposeMatrices(context->threads(), state.batch, y.output * x.output, channels, output,
                      context->output<float>(0));
  }
}

absl::Status ComputeAverage(ComputeContext* context) {
  const InnerLoops& loops = BestInnerLoops();
  const int64_t channels = context->state<PoolingState>().channels;
  Pool(context, 0.f, loops.add_to, [&](int64_t pixels, float* sum) {
    // An empty window has no average: not a number, as 0 / 0 is.
    loops.scale(channels, pixels == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.f / pixels, sum);
  });
  return absl::OkStatus();
}

absl::Status ComputeMaximum(ComputeContext* context) {
  Pool(context, std::numeric_limits<float>::lowest(), BestInnerLoops().max_to, [](int64_t, float*) {});
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(AvgPool) {
  return Kernel("mean of the pixels of the window that lie inside the image")
      .Types<float>("T")
      .Prepare(PreparePooling)
      .Compute(ComputeAverage);
}

DEFINE_KERNEL(MaxPool) {
  return Kernel("largest of the pixels of the window that lie inside the image; NaN counts as none")
      .Types<float>("T")
      .Prepare(PreparePooling)
      .Compute(ComputeMaximum);
}

}  // namespace permafrost
