// Local response normalisation.
#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 1 << 12;  // Elements per task.

struct LrnState : KernelState {
  int64_t pixels = 0, depth = 0, radius = 0;
  float bias = 0, alpha = 0, beta = 0;
};

absl::Status Prepare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  auto state = std::make_unique<LrnState>();
  PF_ASSIGN_OR_RETURN(state->radius, IntAttr(context->node(), "depth_radius"));
  if (state->radius < 0) {
    return absl::InvalidArgumentError(absl::StrCat("depth_radius is ", state->radius, ", expected at least 0"));
  }
  PF_ASSIGN_OR_RETURN(state->bias, FloatAttr(context->node(), "bias"));
  PF_ASSIGN_OR_RETURN(state->alpha, FloatAttr(context->node(), "alpha"));
  PF_ASSIGN_OR_RETURN(state->beta, FloatAttr(context->node(), "beta"));
  const Shape& input = context->input_shape(0);
  state->depth = input.dim(3);
  state->pixels = input.num_elements() == 0 ? 0 : ProductOfDims(input, 0, 3);
  context->SetState(std::move(state));
  context->SetOutputShape(0, input);
  return absl::OkStatus();
}

template <typename T>
void Normalize(ComputeContext* context) {
  const auto& state = context->state<LrnState>();
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  const int64_t radius = std::min(state.radius, state.depth);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, state.depth));
  context->threads().ParallelFor(state.pixels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const T* x = input + pixel * state.depth;
      T* y = output + pixel * state.depth;
      for (int64_t c = 0; c < state.depth; ++c) {
        float squares = 0;
        const int64_t last = std::min(c + radius, state.depth - 1);
        for (int64_t i = std::max<int64_t>(0, c - radius); i <= last; ++i) squares += Widen(x[i]) * Widen(x[i]);
        y[c] = Narrow<T>(Widen(x[c]) * std::pow(state.bias + state.alpha * squares, -state.beta));
      }
    }
  });
}

absl::Status Compute(ComputeContext* context) {
  DispatchOn<float, Half, BFloat16>(context->input_at(0).dtype,
                                    [&](auto tag) { Normalize<typename decltype(tag)::type>(context); });
  return absl::OkStatus();
}

}  // namespace

// Not in place: each element is also read by its neighbours.
DEFINE_KERNEL(LRN) {
  return Kernel("x / (bias + alpha * sum of squares over depth_radius channels on either side)^beta")
      .Types<float, Half, BFloat16>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
