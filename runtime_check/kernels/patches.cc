// ExtractImagePatches: the pixels under each position of a sliding window.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/window_steps.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct PatchState : KernelState {
  Window window;
  int64_t batch = 0, pixel_bytes = 0;
};

absl::StatusOr<KernelSize> ReadAttr(const Node& node, const char* key) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntListAttr(node, key));
  return SpatialPair(values, ImageLayout(), key);
}

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  WindowSteps steps{{1, 1}, {1, 1}, {1, 1}};
  PF_ASSIGN_OR_RETURN(steps.kernel, ReadAttr(node, "ksizes"));
  PF_ASSIGN_OR_RETURN(steps.strides, ReadAttr(node, "strides"));
  PF_ASSIGN_OR_RETURN(steps.dilations, ReadAttr(node, "rates"));
  auto state = std::make_unique<PatchState>();
  PF_ASSIGN_OR_RETURN(state->window, PadWindow(node, ImageLayout(), steps, input.dim(1), input.dim(2)));
  int64_t depth;  // The product of the sizes is below 2^62.
  if (__builtin_mul_overflow(steps.kernel.y * steps.kernel.x, input.dim(3), &depth)) {
    return absl::InvalidArgumentError("a patch has more elements than int64 counts");
  }
  PF_RETURN_IF_ERROR(
      SetCheckedShape(context, 0, Shape({input.dim(0), state->window.y.output, state->window.x.output, depth})));
  state->batch = input.dim(0);
  state->pixel_bytes = input.dim(3) * static_cast<int64_t>(SizeOf(context->input_type(0)));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Pixels outside the image are 0.
absl::Status Compute(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const auto& state = context->state<PatchState>();
  const WindowAxis &y = state.window.y, &x = state.window.x;
  const int64_t bytes = state.pixel_bytes, patch_bytes = y.taps * x.taps * bytes;
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  // Some 10 KB are copied in a microsecond.
  const int64_t grain = 1 + (64 << 10) / patch_bytes;
  context->threads().ParallelFor(state.batch * y.output * x.output, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !RunIsCancelled(); ++i) {
      const int64_t column = i % x.output, line = i / x.output % y.output, image = i / x.output / y.output;
      int64_t y_begin, y_end, x_begin, x_end;
      y.TapsInside(line, &y_begin, &y_end);
      x.TapsInside(column, &x_begin, &x_end);
      char* patch = output + i * patch_bytes;
      std::memset(patch, 0, static_cast<size_t>(patch_bytes));
      for (int64_t ty = y_begin; ty < y_end; ++ty) {
        const char* pixels = input + (image * y.input + y.First(line) + ty * y.dilation) * x.input * bytes;
        for (int64_t tx = x_begin; tx < x_end; ++tx) {
          std::memcpy(patch + (ty * x.taps + tx) * bytes, pixels + (x.First(column) + tx * x.dilation) * bytes,
                      static_cast<size_t>(bytes));
        }
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(ExtractImagePatches) {
  return Kernel("the pixels under each position of a window, one after the other in the last dimension")
      .TypeNumbers("T", MovableTypes())
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
