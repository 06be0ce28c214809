// Conv2D as a matrix product: one row for each output pixel, which holds the input pixels under the window, times the
// filter as a matrix of [taps * input channels][output channels].
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

struct ConvolutionState : public KernelState {
  const InnerLoops* loops = nullptr;
  ImageLayout layout;
  Window window;
  int64_t batch = 0, input_channels = 0, output_channels = 0;
  int64_t groups = 1, group_inputs = 0, group_outputs = 0;  // Channels of one group.

  PackedShape matrix;       // Of one group.
  int64_t matrix_size = 0;  // In floats.
  FloatBuffer weights;      // All groups, packed; unset when the filter is not constant.
  WorkGrid grid;
  bool in_place = false;   // A row of the product is a pixel of the input as it lies.
  int64_t row_stride = 0;  // Of gathered rows, in floats.

  // Offsets of parts of the scratch memory.
  int64_t weights_part = 0, rows_part = 0, input_part = 0, output_part = 0;

  // Without channels nothing is computed, and the number of pixels may be any.
  int64_t num_rows() const { return output_channels == 0 ? 0 : batch * window.y.output * window.x.output; }
};

// Rows at a distance of a multiple of 2 KB share few sets of an 8-way first-level cache of 32 KB: 14 of them do not
// fit.
bool RowsCollide(int64_t stride) { return stride % (2048 / sizeof(float)) == 0; }

// Packs the filter [taps_y][taps_x][group_inputs][output_channels], group after group.
void PackFilter(const ConvolutionState& state, const float* filter, float* packed) {
  for (int64_t g = 0; g < state.groups; ++g) {
    Pack(*state.loops, state.matrix, filter + g * state.group_outputs, state.output_channels, 1,
         packed + g * state.matrix_size);
  }
}

absl::Status PrepareConvolution(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 4));
  const Shape& input = context->input_shape(0);
  const Shape& filter = context->input_shape(1);
  auto state = std::make_unique<ConvolutionState>();
  state->loops = &BestInnerLoops();
  PF_ASSIGN_OR_RETURN(state->layout, ReadImageLayout(context->node()));
  const ImageLayout& layout = state->layout;
  PF_ASSIGN_OR_RETURN(state->window, ReadWindow(context->node(), layout, {filter.dim(0), filter.dim(1)},
                                                input.dim(layout.height), input.dim(layout.width)));
  state->batch = input.dim(0);
  state->input_channels = input.dim(layout.channel);
  state->group_inputs = filter.dim(2);
  state->output_channels = filter.dim(3);
  if (state->input_channels == 0 || state->group_inputs == 0 || state->input_channels % state->group_inputs != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", state->input_channels,
                                                   " channels, expected a positive multiple of the filter's ",
                                                   state->group_inputs));
  }
  state->groups = state->input_channels / state->group_inputs;
  if (state->output_channels % state->groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the filter makes ", state->output_channels,
                                                   " channels, which is no multiple of the ", state->groups,
                                                   " groups of input channels"));
  }
  state->group_outputs = state->output_channels / state->groups;
  const WindowAxis &y = state->window.y, &x = state->window.x;
  PF_RETURN_IF_ERROR(
      SetCheckedShape(context, 0, layout.ShapeOf(state->batch, y.output, x.output, state->output_channels)));

  // The filter's own element count fits int64, so this product does.
  state->matrix = {y.taps * x.taps * state->group_inputs, state->group_outputs};
  PF_ASSIGN_OR_RETURN(state->matrix_size, state->matrix.Size(*state->loops));
  state->grid = PlanWork(*state->loops, state->num_rows(), state->matrix, context->num_threads());
  state->in_place = state->groups == 1 && y.taps == 1 && x.taps == 1 && y.stride == 1 && x.stride == 1 &&
                    y.output == y.input && x.output == x.input && !RowsCollide(state->input_channels);
  state->row_stride = state->matrix.depth + (RowsCollide(state->matrix.depth) ? 16 : 0);

  ScratchParts parts;
  int64_t all_weights = 0;
  if (__builtin_mul_overflow(state->groups, state->matrix_size, &all_weights)) {
    return absl::InvalidArgumentError("the filter is too large");
  }
  if (const Tensor* value = context->input_value(1); value != nullptr) {
    PF_ASSIGN_OR_RETURN(state->weights, FloatBuffer::Allocate(all_weights));
    PackFilter(*state, value->data<float>(), state->weights.data());
    context->ReleaseInput(1);
  } else {
    PF_ASSIGN_OR_RETURN(state->weights_part, parts.Add(all_weights));
  }
  if (!state->in_place) {
    int64_t rows = 0;
    if (__builtin_mul_overflow(state->grid.rows_per_block, state->row_stride, &rows)) {
      return absl::InvalidArgumentError("the window is too large");
    }
    PF_ASSIGN_OR_RETURN(state->rows_part, parts.Add(rows, context->num_threads() * sizeof(float)));
  }
  if (layout.is_nchw()) {
    PF_ASSIGN_OR_RETURN(state->input_part, parts.Add(input.num_elements()));
    PF_ASSIGN_OR_RETURN(state->output_part, parts.Add(state->num_rows(), state->output_channels * sizeof(float)));
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Writes the pixels under the window of output pixels [begin, begin + count), those of one group of channels, to
// `rows`.
void GatherRows(const ConvolutionState& state, const float* input, int64_t group, int64_t begin, int64_t count,
                float* rows) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.group_inputs;
  // Taps next to each other lie next to each other in memory: one copy for all.
  const bool is_contiguous = x.dilation == 1 && state.groups == 1;
  int64_t column = begin % x.output, line = begin / x.output % y.output, image = begin / x.output / y.output;
  for (int64_t r = 0; r < count; ++r, rows += state.row_stride) {
    int64_t y_begin, y_end, x_begin, x_end;
    y.TapsInside(line, &y_begin, &y_end);
    x.TapsInside(column, &x_begin, &x_end);
    const int64_t before = x_begin * channels, after = (x.taps - x_end) * channels;
    float* to = rows;
    std::fill_n(to, y_begin * x.taps * channels, 0.f);
    to += y_begin * x.taps * channels;
    for (int64_t ty = y_begin; ty < y_end; ++ty) {
      const int64_t pixel = (image * y.input + y.First(line) + ty * y.dilation) * x.input + x.First(column);
      std::fill_n(to, before, 0.f);
      to += before;
      if (is_contiguous) {
        std::memcpy(to, input + (pixel + x_begin) * channels, (x_end - x_begin) * channels * sizeof(float));
        to += (x_end - x_begin) * channels;
      } else {
        for (int64_t tx = x_begin; tx < x_end; ++tx, to += channels) {
          std::memcpy(to, input + (pixel + tx * x.dilation) * state.input_channels + group * channels,
                      channels * sizeof(float));
        }
      }
      std::fill_n(to, after, 0.f);
      to += after;
    }
    std::fill_n(to, (y.taps - y_end) * x.taps * channels, 0.f);
    if (++column == x.output) {
      column = 0;
      if (++line == y.output) {
        line = 0;
        ++image;
      }
    }
  }
}

absl::Status ComputeConvolution(ComputeContext* context) {
  const auto& state = context->state<ConvolutionState>();
  const int64_t rows = state.num_rows();
  if (rows == 0 || state.output_channels == 0) return absl::OkStatus();
  const float* input = context->input<float>(0);
  float* output = context->output<float>(0);
  const float* weights = state.weights.data();
  if (weights == nullptr) {
    float* packed = ScratchAt(context, state.weights_part);
    PackFilter(state, context->input<float>(1), packed);
    weights = packed;
  }
  const int64_t input_pixels = state.window.y.input * state.window.x.input;
  const int64_t output_pixels = state.window.y.output * state.window.x.output;
  if (state.layout.is_nchw()) {
    float* pixels = ScratchAt(context, state.input_part);
    TransposeMatrices(context->threads(), state.batch, state.input_channels, input_pixels, input, pixels);
    input = pixels;
    output = ScratchAt(context, state.output_part);
  }

  const WorkGrid& grid = state.grid;
  const int64_t panels = state.matrix.NumPanels(*state.loops);
  float* gathered = ScratchAt(context, state.rows_part);
  ForEachPiece(context->threads(), state.groups * grid.num_pieces(), [&](int worker, int64_t piece) {
    const int64_t group = piece / grid.num_pieces();
    const int64_t row = piece % grid.num_pieces() / grid.panel_groups * grid.rows_per_block;
    const int64_t panel = piece % grid.panel_groups * grid.panels_per_group;
    const int64_t count = std::min(grid.rows_per_block, rows - row);
    const float* left = input + row * state.input_channels;
    int64_t left_stride = state.input_channels;
    if (!state.in_place) {
      float* own = gathered + worker * grid.rows_per_block * state.row_stride;
      GatherRows(state, input, group, row, count, own);
      left = own;
      left_stride = state.row_stride;
    }
    Multiply(*state.loops, count, state.matrix, left, left_stride, weights + group * state.matrix_size,
             output + row * state.output_channels + group * state.group_outputs, state.output_channels, panel,
             std::min(panel + grid.panels_per_group, panels));
  });

  if (state.layout.is_nchw()) {
    TransposeMatrices(context->threads(), state.batch, output_pixels, state.output_channels, output,
                      context->output<float>(0));
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Conv2D) {
  return Kernel(
             "output[n,y,x,o] = sum over dy,dx,i of input[n, y*stride+dy*dilation-pad, x*..., i] * filter[dy,dx,i,o]")
      .Types<float>("T")
      .Prepare(PrepareConvolution)
      .Compute(ComputeConvolution);
}

}  // namespace permafrost
