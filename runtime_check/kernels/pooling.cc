// AvgPool, MaxPool, MaxPoolV2 and MaxPoolWithArgmax. The window counts only the pixels inside the image.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/planes.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/window.h"
#include "runtime_check/kernels/window_steps.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct PoolingState : public KernelState {
  ImageLayout layout;
  Window window;
  int64_t batch = 0, channels = 0;
  int64_t input_part = 0, output_part = 0;  // Offsets in the scratch memory, for NCHW.
};

// Reads the window of a pooling: from attributes, or for MaxPoolV2 from inputs. REQUIRES: input 0 has rank 4.
absl::StatusOr<Window> ReadPoolingWindow(PrepareContext* context, const ImageLayout& layout) {
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  if (node.op() != ops::kMaxPoolV2) {
    PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(node, layout));
    return ReadWindow(node, layout, kernel, input.dim(layout.height), input.dim(layout.width));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntegerVectorInput(context, 2));
  WindowSteps steps{{1, 1}, {1, 1}, {1, 1}};
  PF_ASSIGN_OR_RETURN(steps.kernel, SpatialPair(size, layout, "'ksize'"));
  PF_ASSIGN_OR_RETURN(steps.strides, SpatialPair(strides, layout, "'strides'"));
  return PadWindow(node, layout, steps, input.dim(layout.height), input.dim(layout.width));
}

absl::Status PreparePoolingWith(PrepareContext* context, const ImageLayout& layout,
                                std::unique_ptr<PoolingState> state) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Shape& input = context->input_shape(0);
  state->layout = layout;
  PF_ASSIGN_OR_RETURN(state->window, ReadPoolingWindow(context, layout));
  if (state->window.y.dilation != 1 || state->window.x.dilation != 1) {
    return absl::InvalidArgumentError("attr 'dilations' is not 1, which a pooling does not have");
  }
  state->batch = input.dim(0);
  state->channels = input.dim(layout.channel);
  const Shape output = layout.ShapeOf(state->batch, state->window.y.output, state->window.x.output, state->channels);
  for (int i = 0; i < context->num_outputs(); ++i) PF_RETURN_IF_ERROR(SetCheckedShape(context, i, output));
  if (layout.is_nchw() && context->input_type(0) == DType::kFloat) {
    ScratchParts parts;
    PF_ASSIGN_OR_RETURN(state->input_part, parts.Add(input.num_elements()));
    PF_ASSIGN_OR_RETURN(state->output_part, parts.Add(output.num_elements()));
    parts.Request(context);
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PreparePooling(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const ImageLayout layout, ReadImageLayout(context->node()));
  return PreparePoolingWith(context, layout, std::make_unique<PoolingState>());
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
  const int64_t pixel_cost = channels * std::min(y.taps, y.input) * std::min(x.taps, x.input);
  const int64_t line_cost = x.output * pixel_cost;
  const bool is_long = pixel_cost > (64 << 10);  // Ten microseconds or more for a pixel.
  context->threads().ParallelFor(state.batch * y.output, 1 + (16 << 10) / std::max<int64_t>(line_cost, 1),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) {
                                     const float* image = input + i / y.output * y.input * x.input * channels;
                                     int64_t y_begin, y_end, x_begin, x_end;
                                     y.TapsInside(i % y.output, &y_begin, &y_end);
                                     for (int64_t column = 0; column < x.output; ++column) {
                                       if (is_long && RunIsCancelled()) return;
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

// Computes element by element, for types without vector loops. finish(pixels, value) returns the output.
template <typename T, typename Combine, typename Finish>
absl::Status PoolPlain(ComputeContext* context, T initial, Combine combine, Finish finish) {
  const auto& state = context->state<PoolingState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const ImageStrides in(state.layout, y.input, x.input, state.channels);
  const ImageStrides out(state.layout, y.output, x.output, state.channels);
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  context->threads().ParallelFor(state.batch * y.output * x.output, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      const int64_t column = i % x.output, line = i / x.output % y.output, image = i / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      for (int64_t c = 0; c < state.channels; ++c) {
        T value = initial;
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            value = combine(
                value,
                input[image * in.batch + (y.First(line) + ty) * in.y + (x.First(column) + tx) * in.x + c * in.channel]);
          }
        }
        output[image * out.batch + line * out.y + column * out.x + c * out.channel] =
            finish((y_end - y_begin) * (x_end - x_begin), value);
      }
    }
  });
  return absl::OkStatus();
}

// A register of 32 bytes.
template <typename T>
struct LanesOf {
  typedef T Vector __attribute__((vector_size(32)));
};

// Channels of the pixels of a window of NHWC integers, whose lines are `line_step` elements apart.
template <typename T>
struct PixelWindow {
  int64_t lines, line_step, columns, channels;

  // Writes the maxima of sizeof(Value) bytes of channels: Value is T or a register.
  template <typename Value>
  PF_INLINE inline void TakeMaxima(const T* first, T* to) const {
    Value most;
    std::memcpy(&most, first, sizeof(most));
    for (int64_t line = 0; line < lines; ++line) {
      const T* pixel = first + line * line_step;
      for (int64_t column = 0; column < columns; ++column, pixel += channels) {
        Value other;
        std::memcpy(&other, pixel, sizeof(other));
        most = other > most ? other : most;
      }
    }
    std::memcpy(to, &most, sizeof(most));
  }

  PF_INLINE inline void TakeAllMaxima(const T* first, T* to) const {
    using Vector = typename LanesOf<T>::Vector;
    constexpr auto kLanes = static_cast<int64_t>(sizeof(Vector) / sizeof(T));
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) TakeMaxima<Vector>(first + c, to + c);
    if (c < channels && channels >= kLanes) {  // The last register overlaps the one before it.
      c = channels - kLanes;
      TakeMaxima<Vector>(first + c, to + c);
      return;
    }
    for (; c < channels; ++c) TakeMaxima<T>(first + c, to + c);
  }
};

// The maxima of NHWC integers, a pixel at a time.
template <typename T>
void TakeMaxima(ComputeContext* context) {
  const auto& state = context->state<PoolingState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.channels;
  if (context->output_shape(0).num_elements() == 0) return;
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  const int64_t line_cost = x.output * channels * std::min(y.taps, y.input) * std::min(x.taps, x.input);
  // Bytes are compared 32 at once; 16 << 10 such steps take about 5 microseconds.
  const int64_t grain = 1 + 32 * (16 << 10) / std::max<int64_t>(line_cost, 1);
  context->threads().ParallelFor(state.batch * y.output, grain, [&](int64_t first, int64_t last) {
    Multiversion([&]() PF_INLINE {
      for (int64_t i = first; i < last; ++i) {
        const T* image = input + i / y.output * y.input * x.input * channels;
        int64_t y_begin, y_end, x_begin, x_end;
        y.TapsInside(i % y.output, &y_begin, &y_end);
        for (int64_t column = 0; column < x.output; ++column) {
          x.TapsInside(column, &x_begin, &x_end);
          T* to = output + (i * x.output + column) * channels;
          if (y_begin >= y_end || x_begin >= x_end) {
            std::fill_n(to, channels, std::numeric_limits<T>::lowest());
            continue;
          }
          const int64_t pixel = (y.First(i % y.output) + y_begin) * x.input + x.First(column) + x_begin;
          const PixelWindow<T> window = {y_end - y_begin, x.input * channels, x_end - x_begin, channels};
          window.TakeAllMaxima(image + pixel * channels, to);
        }
      }
    });
  });
}

absl::Status ComputeAverage(ComputeContext* context) {
  if (IsSelected(DType::kDouble) && context->input_at(0).dtype == DType::kDouble) {
    return PoolPlain(
        context, 0., [](double sum, double x) { return sum + x; },
        [](int64_t pixels, double sum) { return sum / static_cast<double>(pixels); });
  }
  const InnerLoops& loops = BestInnerLoops();
  const int64_t channels = context->state<PoolingState>().channels;
  Pool(context, 0.f, loops.add_to, [&](int64_t pixels, float* sum) {
    // The average of an empty window is NaN, as 0 / 0.
    loops.scale(channels, pixels == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.f / pixels, sum);
  });
  return absl::OkStatus();
}

absl::Status ComputeMaximum(ComputeContext* context) {
  absl::Status status;
  if (DispatchOn<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>(
          context->input_at(0).dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            if constexpr (std::is_integral_v<T>) {
              if (!context->state<PoolingState>().layout.is_nchw()) return TakeMaxima<T>(context);
            }
            status = PoolPlain(
                context, std::numeric_limits<T>::lowest(), [](T most, T x) { return x > most ? x : most; },
                [](int64_t, T most) { return most; });
          })) {
    return status;
  }
  Pool(context, std::numeric_limits<float>::lowest(), BestInnerLoops().max_to, [](int64_t, float*) {});
  return absl::OkStatus();
}

// --- MaxPoolWithArgmax -----------------------------------------------------------------------------------------------

struct ArgmaxState : public PoolingState {
  bool counts_images = false;  // Indices count the elements of the whole batch instead of one image.
};

absl::Status PrepareWithArgmax(PrepareContext* context) {
  auto state = std::make_unique<ArgmaxState>();
  PF_ASSIGN_OR_RETURN(state->counts_images, BoolAttr(context->node(), "include_batch_in_index"));
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const bool counts_images = state->counts_images;
  PF_RETURN_IF_ERROR(PreparePoolingWith(context, ImageLayout(), std::move(state)));
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const int64_t all, input.CheckedNumElements());
  const int64_t counted = counts_images || all == 0 ? all : all / input.dim(0);
  if (context->output_type(1) == DType::kInt32 && counted > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("the indices exceed int32: use Targmax int64");
  }
  return absl::OkStatus();
}

// Finds the first of the largest pixels of each window.
template <typename T, typename Index>
void FindLargest(ComputeContext* context) {
  const auto& state = context->state<ArgmaxState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.channels, image_elements = y.input * x.input * channels;
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  Index* indices = context->output<Index>(1);
  context->threads().ParallelFor(state.batch * y.output * x.output, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      const int64_t column = i % x.output, line = i / x.output % y.output, image = i / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      const T* pixels = input + image * image_elements;
      for (int64_t c = 0; c < channels; ++c) {
        int64_t best = -1;
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            const int64_t at = ((y.First(line) + ty) * x.input + x.First(column) + tx) * channels + c;
            if (best < 0 || pixels[best] < pixels[at]) best = at;
          }
        }
        const bool is_empty = best < 0;
        output[i * channels + c] = is_empty ? std::numeric_limits<T>::lowest() : pixels[best];
        indices[i * channels + c] =
            static_cast<Index>(is_empty || !state.counts_images ? best : image * image_elements + best);
      }
    }
  });
}

absl::Status ComputeWithArgmax(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  DispatchOn<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      context->input_at(0).dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        DispatchOn<int32_t, int64_t>(context->output_at(1).dtype,
                                     [&](auto index) { FindLargest<T, typename decltype(index)::type>(context); });
      });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(AvgPool) {
  return Kernel("the mean of the pixels of the window that are inside the image")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PreparePooling>)
      .Compute(ComputeWidened<ComputeAverage>);
}

DEFINE_KERNEL(MaxPool) {
  return Kernel("the maximum of the pixels of the window that are inside the image; NaN is ignored")
      .Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>("T")
      .Prepare(PrepareWidened<PreparePooling>)
      .Compute(ComputeWidened<ComputeMaximum>);
}

DEFINE_KERNEL(MaxPoolV2) {
  return Kernel("as MaxPool, with the window and its steps as inputs")
      .Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>("T")
      .Prepare(PrepareWidened<PreparePooling>)
      .Compute(ComputeWidened<ComputeMaximum>);
}

DEFINE_KERNEL(MaxPoolWithArgmax) {
  return Kernel("the maximum of the pixels of the window, and its flat index; the first index if several are equal")
      .Types<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
          "T")
      .Types<int32_t, int64_t>("Targmax")
      .Prepare(PrepareWidened<PrepareWithArgmax>)
      .Compute(ComputeWidened<ComputeWithArgmax>);
}

}  // namespace permafrost
