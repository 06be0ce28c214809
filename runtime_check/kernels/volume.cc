// Convolution and pooling of volumes: Conv3D, Conv3DBackpropInputV2, AvgPool3D and MaxPool3D, channels last.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"
#include "runtime_check/kernels/stand_in.h"
#include "runtime_check/kernels/window.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

// Depth, height and width.
using Axes = std::array<WindowAxis, 3>;

struct VolumeState : KernelState {
  Axes axes;
  // The filter of a convolution of floats in one group, if it is known before the run.
  bool is_packed = false;
  PackedShape packed_shape;
  FloatBuffer packed;
  int64_t rows_at_once = 1;       // Output positions that are multiplied together.
  int64_t scratch_of_worker = 0;  // In bytes.
};

// Larger factors are useless, and their products with positions could exceed int64.
constexpr int64_t kLargestStep = int64_t{1} << 31;

absl::StatusOr<std::vector<int64_t>> StepsOf(const Node& node, absl::string_view attr) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> steps, IntListAttr(node, attr));
  bool fits = steps.size() == 5 && steps[0] == 1 && steps[4] == 1;
  for (const int64_t step : steps) fits = fits && step >= 1 && step <= kLargestStep;
  if (fits) return steps;
  return absl::InvalidArgumentError(
      absl::StrCat("attr '", attr, "' is expected to have 5 values from 1 to 2^31, the first and the last of them 1"));
}

// Returns the windows with `taps` over a volume of shape `input`.
absl::StatusOr<Axes> ReadAxes(const Node& node, const Shape& input, const std::array<int64_t, 3>& taps,
                              bool has_dilations) {
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
  if (format != "NDHWC") {
    return absl::UnimplementedError(absl::StrCat("attr 'data_format' is '", format, "', expected NDHWC"));
  }
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(node, "padding"));
  if (padding != "SAME" && padding != "VALID") {
    return absl::InvalidArgumentError(absl::StrCat("attr 'padding' is '", padding, "', expected SAME or VALID"));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, StepsOf(node, "strides"));
  std::vector<int64_t> dilations(5, 1);
  if (has_dilations) {
    PF_ASSIGN_OR_RETURN(dilations, StepsOf(node, "dilations"));
  }
  Axes axes;
  for (int d = 0; d < 3; ++d) {
    WindowAxis& axis = axes[static_cast<size_t>(d)];
    axis.input = input.dim(d + 1);
    axis.taps = taps[static_cast<size_t>(d)];
    axis.stride = strides[static_cast<size_t>(d + 1)];
    axis.dilation = dilations[static_cast<size_t>(d + 1)];
    if (axis.taps < 1 || axis.taps > kLargestStep || axis.input > (int64_t{1} << 40)) {
      return absl::InvalidArgumentError(absl::StrCat("found a window of ", axis.taps, " over ", axis.input,
                                                     ", expected 1 to 2^31 over at most 2^40"));
    }
    const int64_t reach = (axis.taps - 1) * axis.dilation + 1;
    if (padding == "SAME") {
      axis.output = (axis.input + axis.stride - 1) / axis.stride;
      axis.pad_before = std::max<int64_t>((axis.output - 1) * axis.stride + reach - axis.input, 0) / 2;
    } else {
      if (reach > axis.input) {
        return absl::InvalidArgumentError(
            absl::StrCat("a window of ", reach, " is larger than the ", axis.input, " of its axis"));
      }
      axis.output = (axis.input - reach) / axis.stride + 1;
    }
  }
  return axes;
}

// Calls f(input position, tap) for the taps inside the volume at an output position, both as offsets in row-major
// order.
template <typename F>
void ForEachTap(const Axes& axes, int64_t z, int64_t y, int64_t x, F f) {
  int64_t begin[3], end[3];
  const int64_t position[3] = {z, y, x};
  for (size_t d = 0; d < 3; ++d) axes[d].TapsInside(position[d], &begin[d], &end[d]);
  for (int64_t i = begin[0]; i < end[0]; ++i) {
    for (int64_t j = begin[1]; j < end[1]; ++j) {
      for (int64_t k = begin[2]; k < end[2]; ++k) {
        const int64_t in_z = axes[0].First(z) + i * axes[0].dilation, in_y = axes[1].First(y) + j * axes[1].dilation;
        const int64_t in_x = axes[2].First(x) + k * axes[2].dilation;
        f((in_z * axes[1].input + in_y) * axes[2].input + in_x, (i * axes[1].taps + j) * axes[2].taps + k);
      }
    }
  }
}

// Calls f(output position, z, y, x) for the positions of one volume, in parallel.
template <typename F>
void ForEachPosition(ComputeContext* context, const Axes& axes, int64_t volumes, F f) {
  const int64_t rows = volumes * axes[0].output * axes[1].output;
  context->threads().ParallelFor(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t y = row % axes[1].output, z = row / axes[1].output % axes[0].output;
      const int64_t volume = row / (axes[0].output * axes[1].output);
      for (int64_t x = 0; x < axes[2].output && !RunIsCancelled(); ++x) f(volume, row * axes[2].output + x, z, y, x);
    }
  });
}

int64_t InputPositions(const Axes& axes) { return axes[0].input * axes[1].input * axes[2].input; }

// --- Convolution. Filters are [depth, height, width, input channels of a group, output channels].

// Packs the filter. The inputs of a few output positions are then copied to rows, and multiplied with it.
absl::Status PackFilter(PrepareContext* context, VolumeState* state) {
  const Tensor* filter = context->input_value(1);
  const int64_t outputs = context->input_shape(1).dim(4), channels = context->input_shape(0).dim(4);
  if (filter == nullptr || context->input_type(1) != DType::kFloat || context->input_shape(1).dim(3) != channels ||
      filter->num_elements() == 0) {
    return absl::OkStatus();
  }
  const InnerLoops& loops = BestInnerLoops();
  state->packed_shape = {filter->num_elements() / outputs, outputs};
  PF_ASSIGN_OR_RETURN(const int64_t size, state->packed_shape.Size(loops));
  PF_ASSIGN_OR_RETURN(state->packed, FloatBuffer::Allocate(size));
  Pack(loops, state->packed_shape, filter->data<float>(), outputs, 1, state->packed.data());
  // The rows stay in the L2 cache, together with the filter of a small convolution.
  constexpr int64_t kRowBytes = 64 << 10;
  state->rows_at_once =
      std::clamp<int64_t>(kRowBytes / 4 / state->packed_shape.depth, 1, std::max<int64_t>(1, state->axes[2].output));
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(state->rows_at_once, state->packed_shape.depth * 4).status());
  PF_ASSIGN_OR_RETURN(state->scratch_of_worker, parts.Add(0));
  PF_RETURN_IF_ERROR(parts.Add(context->num_threads() - 1, state->scratch_of_worker).status());
  parts.Request(context);
  context->ReleaseInput(1);
  state->is_packed = true;
  return absl::OkStatus();
}

absl::Status PrepareConvolution(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 5));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 5));
  const Shape &input = context->input_shape(0), &filter = context->input_shape(1);
  const int64_t group = filter.dim(3), groups = group > 0 && input.dim(4) % group == 0 ? input.dim(4) / group : 0;
  if (groups == 0 || filter.dim(4) % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a filter of shape ", filter.ToString(), " does not fit volumes of shape ", input.ToString()));
  }
  auto state = std::make_unique<VolumeState>();
  PF_ASSIGN_OR_RETURN(state->axes,
                      ReadAxes(context->node(), input, {filter.dim(0), filter.dim(1), filter.dim(2)}, true));
  const Shape output(
      {input.dim(0), state->axes[0].output, state->axes[1].output, state->axes[2].output, filter.dim(4)});
  PF_RETURN_IF_ERROR(PackFilter(context, state.get()));
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, output);
}

template <typename T>
void Convolve(ComputeContext* context) {
  const Axes& axes = context->state<VolumeState>().axes;
  const T *input = context->input<T>(0), *filter = context->input<T>(1);
  T* output = context->output<T>(0);
  const int64_t channels = context->input_shape(0).dim(4), group = context->input_shape(1).dim(3);
  const int64_t outputs = context->input_shape(1).dim(4), per_group = outputs / (channels / group);
  ForEachPosition(context, axes, context->input_shape(0).dim(0),
                  [&](int64_t volume, int64_t position, int64_t z, int64_t y, int64_t x) {
                    T* sums = output + position * outputs;
                    std::fill_n(sums, outputs, T{0});
                    ForEachTap(axes, z, y, x, [&](int64_t from, int64_t tap) {
                      const T* pixel = input + (volume * InputPositions(axes) + from) * channels;
                      const T* weights = filter + tap * group * outputs;
                      for (int64_t c = 0; c < channels; ++c) {
                        const int64_t first = c / group * per_group;
                        const T* row = weights + c % group * outputs + first;
                        for (int64_t o = 0; o < per_group; ++o) sums[first + o] += pixel[c] * row[o];
                      }
                    });
                  });
}

// Copies the inputs of an output position, with zeros for taps outside of the volume.
void CopyWindow(const Axes& axes, const float* volume, int64_t channels, int64_t z, int64_t y, int64_t x, float* row) {
  int64_t begin, end;
  axes[2].TapsInside(x, &begin, &end);
  const int64_t line = axes[2].taps * channels;
  for (int64_t i = 0; i < axes[0].taps; ++i) {
    const int64_t in_z = axes[0].First(z) + i * axes[0].dilation;
    for (int64_t j = 0; j < axes[1].taps; ++j, row += line) {
      const int64_t in_y = axes[1].First(y) + j * axes[1].dilation;
      const bool is_outside = in_z < 0 || in_z >= axes[0].input || in_y < 0 || in_y >= axes[1].input;
      if (is_outside || end - begin < axes[2].taps) std::fill_n(row, line, 0.0f);
      if (is_outside) continue;
      const float* pixels = volume + (in_z * axes[1].input + in_y) * axes[2].input * channels;
      if (axes[2].dilation == 1) {
        std::copy_n(pixels + (axes[2].First(x) + begin) * channels, std::max<int64_t>(0, end - begin) * channels,
                    row + begin * channels);
        continue;
      }
      for (int64_t k = begin; k < end; ++k) {
        std::copy_n(pixels + (axes[2].First(x) + k * axes[2].dilation) * channels, channels, row + k * channels);
      }
    }
  }
}

absl::Status ConvolvePacked(ComputeContext* context) {
  const auto& state = context->state<VolumeState>();
  const Axes& axes = state.axes;
  const InnerLoops& loops = BestInnerLoops();
  const auto* input = context->input<float>(0);
  auto* output = context->output<float>(0);
  const int64_t channels = context->input_shape(0).dim(4), depth = state.packed_shape.depth;
  const int64_t outputs = state.packed_shape.columns, panels = state.packed_shape.NumPanels(loops);
  const int64_t lines = context->input_shape(0).dim(0) * axes[0].output * axes[1].output;
  char* scratch = context->scratch();
  ForEachPiece(context->threads(), lines, [&](int worker, int64_t line) {
    auto* rows = reinterpret_cast<float*>(scratch + worker * state.scratch_of_worker);
    const int64_t y = line % axes[1].output, z = line / axes[1].output % axes[0].output;
    const float* volume = input + line / (axes[0].output * axes[1].output) * InputPositions(axes) * channels;
    for (int64_t x = 0; x < axes[2].output && !RunIsCancelled(); x += state.rows_at_once) {
      const int64_t count = std::min(state.rows_at_once, axes[2].output - x);
      for (int64_t i = 0; i < count; ++i) CopyWindow(axes, volume, channels, z, y, x + i, rows + i * depth);
      Multiply(loops, count, state.packed_shape, rows, depth, state.packed.data(),
               output + (line * axes[2].output + x) * outputs, outputs, 0, panels);
    }
  });
  return absl::OkStatus();
}

absl::Status ComputeConvolution(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  if (context->state<VolumeState>().is_packed) return ConvolvePacked(context);
  DispatchOn<float, double>(context->output_at(0).dtype,
                            [&](auto tag) { Convolve<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

// Inputs: (sizes of the result, filter, gradient). Prepares the transpose of the convolution from the result to the
// gradient.
absl::Status PrepareTransposed(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 5));
  PF_RETURN_IF_ERROR(RequireRank(context, 2, 5));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntegerVectorInput(context, 0));
  if (sizes.size() != 5) {
    return absl::InvalidArgumentError(absl::StrCat("'input_sizes' has ", sizes.size(), " entries, expected 5"));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape(sizes)));
  const Shape &filter = context->input_shape(1), &gradient = context->input_shape(2);
  auto state = std::make_unique<VolumeState>();
  PF_ASSIGN_OR_RETURN(state->axes,
                      ReadAxes(context->node(), Shape(sizes), {filter.dim(0), filter.dim(1), filter.dim(2)}, true));
  const Shape expected({sizes[0], state->axes[0].output, state->axes[1].output, state->axes[2].output, filter.dim(4)});
  if (gradient != expected || filter.dim(3) != sizes[4]) {
    return absl::InvalidArgumentError(absl::StrCat("a gradient of shape ", gradient.ToString(),
                                                   " and a filter of shape ", filter.ToString(),
                                                   " do not lead to the shape ", Shape(sizes).ToString()));
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <typename T>
void ConvolveBackwards(ComputeContext* context) {
  const Axes& axes = context->state<VolumeState>().axes;
  const T *filter = context->input<T>(1), *gradient = context->input<T>(2);
  T* output = context->output<T>(0);
  const int64_t channels = context->input_shape(1).dim(3), outputs = context->input_shape(1).dim(4);
  std::fill_n(output, context->output_shape(0).num_elements(), T{0});
  if (context->output_shape(0).num_elements() == 0 || context->input_shape(2).num_elements() == 0) return;
  const int64_t positions = axes[0].output * axes[1].output * axes[2].output;
  // Windows overlap in the result, so each volume is one task.
  context->threads().ParallelFor(context->output_shape(0).dim(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t volume = begin; volume < end; ++volume) {
      for (int64_t p = 0; p < positions && !RunIsCancelled(); ++p) {
        const T* from = gradient + (volume * positions + p) * outputs;
        const int64_t x = p % axes[2].output, y = p / axes[2].output % axes[1].output;
        const int64_t z = p / (axes[2].output * axes[1].output);
        ForEachTap(axes, z, y, x, [&](int64_t to, int64_t tap) {
          T* pixel = output + (volume * InputPositions(axes) + to) * channels;
          const T* weights = filter + tap * channels * outputs;
          for (int64_t c = 0; c < channels; ++c) {
            T sum = 0;
            for (int64_t o = 0; o < outputs; ++o) sum += weights[c * outputs + o] * from[o];
            pixel[c] += sum;
          }
        });
      }
    }
  });
}

absl::Status ComputeTransposed(ComputeContext* context) {
  DispatchOn<float, double>(context->output_at(0).dtype,
                            [&](auto tag) { ConvolveBackwards<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

// --- Pooling

absl::Status PreparePooling(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 5));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> window, StepsOf(context->node(), "ksize"));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<VolumeState>();
  PF_ASSIGN_OR_RETURN(state->axes, ReadAxes(context->node(), input, {window[1], window[2], window[3]}, false));
  const Shape output({input.dim(0), state->axes[0].output, state->axes[1].output, state->axes[2].output, input.dim(4)});
  context->SetState(std::move(state));
  return SetCheckedShape(context, 0, output);
}

template <bool is_mean, typename T>
void Pool(ComputeContext* context) {
  const Axes& axes = context->state<VolumeState>().axes;
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  const int64_t channels = context->input_shape(0).dim(4);
  ForEachPosition(context, axes, context->input_shape(0).dim(0),
                  [&](int64_t volume, int64_t position, int64_t z, int64_t y, int64_t x) {
                    T* result = output + position * channels;
                    std::fill_n(result, channels, is_mean ? T{0} : std::numeric_limits<T>::lowest());
                    int64_t count = 0;
                    ForEachTap(axes, z, y, x, [&](int64_t from, int64_t) {
                      const T* pixel = input + (volume * InputPositions(axes) + from) * channels;
                      for (int64_t c = 0; c < channels; ++c) {
                        result[c] = is_mean ? result[c] + pixel[c] : std::max(result[c], pixel[c]);
                      }
                      ++count;
                    });
                    for (int64_t c = 0; is_mean && c < channels; ++c) result[c] /= static_cast<T>(count);
                  });
}

template <bool is_mean>
absl::Status ComputePooling(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  DispatchOn<float, double>(context->output_at(0).dtype,
                            [&](auto tag) { Pool<is_mean, typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Conv3D) {
  return Kernel("Conv2D with a third spatial dimension, depth")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PrepareConvolution>)
      .Compute(ComputeWidened<ComputeConvolution>);
}
DEFINE_KERNEL(Conv3DBackpropInputV2) {
  return Kernel("the gradient of Conv3D with respect to its input: a transposed convolution")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PrepareTransposed>)
      .Compute(ComputeWidened<ComputeTransposed>);
}
DEFINE_KERNEL(AvgPool3D) {
  return Kernel("the mean of the elements of the window that are inside the volume")
      .TypeNumbers("T", FloatingTypes())
      .Prepare(PrepareWidened<PreparePooling>)
      .Compute(ComputeWidened<ComputePooling<true>>);
}
DEFINE_KERNEL(MaxPool3D) {
  return Kernel("the maximum of the elements of the window")
      .TypeNumbers("T", {DType::kFloat, DType::kHalf, DType::kBFloat16})
      .Prepare(PrepareWidened<PreparePooling>)
      .Compute(ComputeWidened<ComputePooling<false>>);
}

}  // namespace permafrost
