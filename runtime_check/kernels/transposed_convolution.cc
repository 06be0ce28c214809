// Conv2DBackpropInput: the transposed convolution. Every pixel of the smaller image contributes to a window of the
// larger one.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/packed_input.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/wide_elements.h"
#include "runtime_check/kernels/window.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// The state. `window` is the window of the convolution whose gradient this is: its input is the output of this op
// ("large"), its output the input of this op ("small").
struct TransposedState : public KernelState {
  const InnerLoops* loops = nullptr;
  ImageLayout layout;
  Window window;
  int64_t batch = 0, small_channels = 0, large_channels = 0;

  // The filter [taps_y][taps_x][large_channels][small_channels] as [small_channels][taps_y * taps_x * large_channels].
  // A row of small pixels times this matrix is its contribution to each line of taps.
  PackedShape matrix;
  PackedInput weights;          // Unset if the filter is not constant.
  int64_t lines_per_piece = 1;  // Lines of the large image.
  int64_t weights_part = 0, products_part = 0, small_part = 0, large_part = 0;

  int64_t line_products() const { return window.x.output * matrix.columns; }
};

void PackTransposed(const TransposedState& state, const float* filter, float* packed) {
  Pack(*state.loops, state.matrix, filter, 1, state.small_channels, packed);
}

absl::Status PrepareTransposed(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 4));
  const Shape& filter = context->input_shape(1);
  const Shape& small = context->input_shape(2);
  auto state = std::make_unique<TransposedState>();
  state->loops = &BestInnerLoops();
  PF_ASSIGN_OR_RETURN(state->layout, ReadImageLayout(context->node()));
  const ImageLayout& layout = state->layout;
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, IntegerVectorInput(context, 0));
  state->batch = small.dim(0);
  state->small_channels = small.dim(layout.channel);
  state->large_channels = filter.dim(2);
  if (sizes.size() == 2) {  // Height and width without batch and channels are accepted, too.
    const Shape whole = layout.ShapeOf(state->batch, sizes[0], sizes[1], state->large_channels);
    sizes.assign(whole.dims().begin(), whole.dims().end());
  }
  if (sizes.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("input 0 (input_sizes) has ", sizes.size(), " values, expected 4"));
  }
  const Shape large(sizes);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, large));
  if (filter.dim(3) != state->small_channels || large.dim(0) != state->batch ||
      large.dim(layout.channel) != state->large_channels) {
    return absl::InvalidArgumentError(absl::StrCat("input_sizes ", large.ToString(), ", filter ", filter.ToString(),
                                                   " and out_backprop ", small.ToString(),
                                                   " disagree on batch or channels"));
  }
  PF_ASSIGN_OR_RETURN(state->window, ReadWindow(context->node(), layout, {filter.dim(0), filter.dim(1)},
                                                large.dim(layout.height), large.dim(layout.width)));
  const WindowAxis &y = state->window.y, &x = state->window.x;
  if (y.output != small.dim(layout.height) || x.output != small.dim(layout.width)) {
    return absl::InvalidArgumentError(absl::StrCat("out_backprop has ", small.dim(layout.height), "x",
                                                   small.dim(layout.width), " pixels, expected ", y.output, "x",
                                                   x.output, " for input_sizes ", large.ToString()));
  }

  if (context->input_type(1) != DType::kFloat) {
    context->SetState(std::move(state));
    return absl::OkStatus();
  }
  state->matrix = {state->small_channels, y.taps * x.taps * state->large_channels};
  PF_ASSIGN_OR_RETURN(const int64_t matrix_size, state->matrix.Size(*state->loops));
  // Pieces share the small lines at their borders, so pieces are few and tall: one per thread.
  const int64_t images = std::clamp<int64_t>(state->batch, 1, context->num_threads());
  const int64_t pieces_per_image = (context->num_threads() + images - 1) / images;
  state->lines_per_piece = std::max<int64_t>(1, (y.input + pieces_per_image - 1) / pieces_per_image);
  ScratchParts parts;
  PF_RETURN_IF_ERROR(state->weights.Take(
      context, 1, *state->loops, matrix_size, [] { return std::string("transposed filter"); },
      [&](const float* value, float* packed) { PackTransposed(*state, value, packed); }));
  if (state->weights.data() == nullptr) {
    PF_ASSIGN_OR_RETURN(state->weights_part, parts.Add(matrix_size));
  }
  int64_t line_products = 0;
  if (__builtin_mul_overflow(x.output, state->matrix.columns, &line_products)) {
    return absl::InvalidArgumentError("the window is too large");
  }
  PF_ASSIGN_OR_RETURN(state->products_part, parts.Add(line_products, context->num_threads() * sizeof(float)));
  if (layout.is_nchw()) {
    PF_ASSIGN_OR_RETURN(state->small_part, parts.Add(small.num_elements()));
    PF_ASSIGN_OR_RETURN(state->large_part, parts.Add(large.num_elements()));
  }
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes y[i] += x[i]. For a line of taps with few channels a function call would cost too much.
inline void AddRun(const InnerLoops& loops, int64_t count, const float* x, float* y) {
#ifndef __OPTIMIZE_SIZE__
  constexpr int64_t kFew = 8;
  if (count <= kFew) {
    for (int64_t i = 0; i < count; ++i) y[i] += x[i];
    return;
  }
#endif
  loops.add_to(count, x, y);
}

// Adds the contribution of one small line (its products with the filter) to the large lines [begin, end).
void SpreadLine(const TransposedState& state, int64_t small_line, const float* products, int64_t begin, int64_t end,
                float* large_image) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.large_channels;
  for (int64_t ty = 0; ty < y.taps; ++ty) {
    const int64_t line = y.First(small_line) + ty * y.dilation;
    if (line < begin || line >= end) continue;
    for (int64_t column = 0; column < x.output; ++column) {
      int64_t x_begin = 0, x_end = x.taps;
      if (!x.IsInside(column)) x.TapsInside(column, &x_begin, &x_end);
      const float* from = products + column * state.matrix.columns + ty * x.taps * channels;
      if (x.dilation == 1) {  // The taps are contiguous.
        AddRun(*state.loops, (x_end - x_begin) * channels, from + x_begin * channels,
               large_image + (line * x.input + x.First(column) + x_begin) * channels);
        continue;
      }
      for (int64_t tx = x_begin; tx < x_end; ++tx) {
        AddRun(*state.loops, channels, from + tx * channels,
               large_image + (line * x.input + x.First(column) + tx * x.dilation) * channels);
      }
    }
  }
}

// Returns the small position whose tap is at a large position; -1 for none.
int64_t SmallPosition(const WindowAxis& axis, int64_t large, int64_t tap) {
  const int64_t distance = large + axis.pad_before - tap * axis.dilation;
  return distance < 0 || distance % axis.stride != 0 || distance / axis.stride >= axis.output ? -1
                                                                                              : distance / axis.stride;
}

// Computes element by element, for types without a matrix product. Integers wrap around.
template <typename T>
void ComputePlain(ComputeContext* context, const TransposedState& state) {
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const ImageStrides in(state.layout, y.output, x.output, state.small_channels);
  const ImageStrides out(state.layout, y.input, x.input, state.large_channels);
  const T* filter = context->input<T>(1);
  const T* small = context->input<T>(2);
  T* large = context->output<T>(0);
  context->threads().ParallelFor(state.batch * y.input * x.input, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      const int64_t column = i % x.input, line = i / x.input % y.input, image = i / x.input / y.input;
      for (int64_t c = 0; c < state.large_channels; ++c) {
        Wrapping<T> sum = 0;
        for (int64_t ty = 0; ty < y.taps; ++ty) {
          const int64_t small_line = SmallPosition(y, line, ty);
          for (int64_t tx = 0; tx < x.taps && small_line >= 0; ++tx) {
            const int64_t small_column = SmallPosition(x, column, tx);
            if (small_column < 0) continue;
            const T* pixel = small + image * in.batch + small_line * in.y + small_column * in.x;
            const T* weights = filter + ((ty * x.taps + tx) * state.large_channels + c) * state.small_channels;
            for (int64_t o = 0; o < state.small_channels; ++o) {
              sum += static_cast<Wrapping<T>>(pixel[o * in.channel]) * static_cast<Wrapping<T>>(weights[o]);
            }
          }
        }
        large[image * out.batch + line * out.y + column * out.x + c * out.channel] = static_cast<T>(sum);
      }
    }
  });
}

absl::Status ComputeTransposed(ComputeContext* context) {
  const auto& state = context->state<TransposedState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  if (DispatchOn<double, int32_t>(context->input_at(1).dtype,
                                  [&](auto tag) { ComputePlain<typename decltype(tag)::type>(context, state); })) {
    return absl::OkStatus();
  }
  const float* small = context->input<float>(2);
  float* large = context->output<float>(0);
  const float* weights = state.weights.data();
  if (weights == nullptr) {
    float* packed = ScratchAt(context, state.weights_part);
    PackTransposed(state, context->input<float>(1), packed);
    weights = packed;
  }
  if (state.layout.is_nchw()) {
    float* pixels = ScratchAt(context, state.small_part);
    TransposeMatrices(context->threads(), state.batch, state.small_channels, y.output * x.output, small, pixels);
    small = pixels;
    large = ScratchAt(context, state.large_part);
  }
  const int64_t pieces_per_image = (y.input + state.lines_per_piece - 1) / state.lines_per_piece;
  const int64_t line_floats = x.input * state.large_channels;
  float* all_products = ScratchAt(context, state.products_part);
  ForEachPiece(context->threads(), state.batch * pieces_per_image, [&](int worker, int64_t piece) {
    const int64_t image = piece / pieces_per_image;
    const int64_t begin = piece % pieces_per_image * state.lines_per_piece;
    const int64_t end = std::min(y.input, begin + state.lines_per_piece);
    float* large_image = large + image * y.input * line_floats;
    float* products = all_products + worker * state.line_products();
    std::fill_n(large_image + begin * line_floats, (end - begin) * line_floats, 0.f);
    // Small line s contributes to the large lines from s * stride - pad to (taps - 1) * dilation further.
    const int64_t reach = (y.taps - 1) * y.dilation;
    const int64_t first = std::max<int64_t>(0, (begin + y.pad_before - reach + y.stride - 1) / y.stride);
    const int64_t last = std::min(y.output, (end - 1 + y.pad_before) / y.stride + 1);
    for (int64_t s = begin + y.pad_before < reach ? 0 : first; s < last; ++s) {
      Multiply(*state.loops, x.output, state.matrix, small + (image * y.output + s) * x.output * state.small_channels,
               state.small_channels, weights, products, state.matrix.columns, 0, state.matrix.NumPanels(*state.loops));
      SpreadLine(state, s, products, begin, end, large_image);
    }
  });
  if (state.layout.is_nchw()) {
    TransposeMatrices(context->threads(), state.batch, y.input * x.input, state.large_channels, large,
                      context->output<float>(0));
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Conv2DBackpropInput) {
  return Kernel("output[n, y*stride+dy*dilation-pad, x*..., i] += out_backprop[n,y,x,o] * filter[dy,dx,i,o]")
      .Types<float, double, Half, BFloat16, int32_t>("T")
      .Prepare(PrepareWidened<PrepareTransposed>)
      .Compute(ComputeWidened<ComputeTransposed>);
}

}  // namespace permafrost
