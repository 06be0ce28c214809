// QuantizedAvgPool and QuantizedMaxPool: pooling of codes, without a change of the range.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {
namespace {

struct PoolingState : public KernelState {
  Window window;
  int64_t batch = 0, channels = 0;
};

absl::Status PreparePooling(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 1, 2));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<PoolingState>();
  const ImageLayout layout;
  PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(context->node(), layout));
  PF_ASSIGN_OR_RETURN(state->window, ReadWindow(context->node(), layout, kernel, input.dim(1), input.dim(2)));
  if (state->window.y.dilation != 1 || state->window.x.dilation != 1) {
    return absl::InvalidArgumentError("attr 'dilations' is not 1, which a pooling does not have");
  }
  state->batch = input.dim(0);
  state->channels = input.dim(3);
  PF_RETURN_IF_ERROR(SetCheckedShape(
      context, 0, Shape{state->batch, state->window.y.output, state->window.x.output, state->channels}));
  SetRangeOutputShapes(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// For each output pixel: accumulators start at `initial`, combine(&sum, code) includes each pixel of the window, and
// finish(sum, pixels) returns the result. A window always contains a pixel of the image.
template <typename Code, typename Combine, typename Finish>
void Pool(ComputeContext* context, int32_t initial, Combine combine, Finish finish) {
  const auto& state = context->state<PoolingState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t channels = state.channels;
  SetRangeOutput(context, RangeInput(*context, 1));
  if (context->output_shape(0).num_elements() == 0) return;
  const auto* input = context->input_bits<Code>(0);
  auto* output = context->output_bits<Code>(0);
  constexpr int64_t kChannels = 64;  // The number of sums that stay in the L1 cache with their pixels.
  const int64_t line_cost = x.output * channels * std::min(y.taps, y.input) * std::min(x.taps, x.input);
  const auto line = [&](int64_t i) {
    const Code* image = input + i / y.output * y.input * x.input * channels;
    int64_t y_begin, y_end, x_begin, x_end;
    y.TapsInside(i % y.output, &y_begin, &y_end);
    for (int64_t column = 0; column < x.output; ++column) {
      x.TapsInside(column, &x_begin, &x_end);
      const int64_t pixels = (y_end - y_begin) * (x_end - x_begin);
      for (int64_t first = 0; first < channels; first += kChannels) {
        const int64_t count = std::min(kChannels, channels - first);
        int32_t sums[kChannels];
        std::fill_n(sums, count, initial);
        for (int64_t ty = y_begin; ty < y_end; ++ty) {
          const int64_t row = (y.First(i % y.output) + ty) * x.input + x.First(column);
          for (int64_t tx = x_begin; tx < x_end; ++tx) {
            const Code* pixel = image + (row + tx) * channels + first;
            for (int64_t c = 0; c < count; ++c) combine(&sums[c], pixel[c]);
          }
        }
        Code* to = output + (i * x.output + column) * channels + first;
        for (int64_t c = 0; c < count; ++c) to[c] = static_cast<Code>(finish(sums[c], pixels));
      }
    }
  };
  context->threads().ParallelFor(state.batch * y.output, 1 + (16 << 10) / std::max<int64_t>(line_cost, 1),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t i = begin; i < end; ++i) line(i);
                                 });
}

// The mean is rounded towards zero by integer division.
absl::Status ComputeAverage(ComputeContext* context) {
  DispatchOn<QUint8, QInt8>(context->input_at(0).dtype, [&](auto tag) {
    using Code = CodeOf<typename decltype(tag)::type>;
    Pool<Code>(
        context, 0, [](int32_t* sum, Code code) { *sum = static_cast<int32_t>(static_cast<uint32_t>(*sum) + code); },
        [](int32_t sum, int64_t pixels) { return sum / pixels; });
  });
  return absl::OkStatus();
}

absl::Status ComputeMaximum(ComputeContext* context) {
  DispatchOn<QUint8, QInt8>(context->input_at(0).dtype, [&](auto tag) {
    using Code = CodeOf<typename decltype(tag)::type>;
    Pool<Code>(
        context, std::numeric_limits<int32_t>::min(),
        [](int32_t* most, Code code) { *most = std::max<int32_t>(*most, code); },
        [](int32_t most, int64_t) { return most; });
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedAvgPool) {
  return Kernel("the mean of the codes of the window that are inside the image, rounded towards zero")
      .Types<QUint8, QInt8>("T")
      .Prepare(PreparePooling)
      .Compute(ComputeAverage);
}

DEFINE_KERNEL(QuantizedMaxPool) {
  return Kernel("the maximum of the codes of the window that are inside the image")
      .Types<QUint8, QInt8>("T")
      .Prepare(PreparePooling)
      .Compute(ComputeMaximum);
}

}  // namespace permafrost
