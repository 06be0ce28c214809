// The three FakeQuantWithMinMax ops: round numbers to the values that codes of few bits can represent.
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct FakeQuantState : public KernelState {
  float lowest = 0, highest = 255;  // Range of codes.
  float min = 0, max = 0;           // Only for FakeQuantWithMinMaxArgs.
};

absl::StatusOr<std::unique_ptr<FakeQuantState>> ReadFakeQuant(const Node& node) {
  auto state = std::make_unique<FakeQuantState>();
  PF_ASSIGN_OR_RETURN(const int64_t num_bits, IntAttr(node, "num_bits"));
  PF_ASSIGN_OR_RETURN(const bool narrow_range, BoolAttr(node, "narrow_range"));
  if (num_bits < 2 || num_bits > 16) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'num_bits' is ", num_bits, ", expected 2 to 16"));
  }
  state->lowest = narrow_range ? 1 : 0;
  state->highest = static_cast<float>((1 << num_bits) - 1);
  return state;
}

absl::Status PrepareFakeQuantArgs(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(auto state, ReadFakeQuant(context->node()));
  PF_ASSIGN_OR_RETURN(state->min, FloatAttr(context->node(), "min"));
  PF_ASSIGN_OR_RETURN(state->max, FloatAttr(context->node(), "max"));
  if (!(state->min < state->max)) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'min' is ", state->min, ", not below 'max', ", state->max));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status PrepareFakeQuantVars(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(auto state, ReadFakeQuant(context->node()));
  for (int i = 1; i <= 2; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 0));
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status PrepareFakeQuantChannels(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(auto state, ReadFakeQuant(context->node()));
  const Shape& input = context->input_shape(0);
  if (input.rank() < 1) return absl::InvalidArgumentError("input 0 is a scalar, expected rank 1 or more");
  for (int i = 1; i <= 2; ++i) {
    PF_RETURN_IF_ERROR(RequireRank(context, i, 1));
    if (context->input_shape(i).dim(0) != input.dim(input.rank() - 1)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", context->input_shape(i).dim(0),
                                                     " elements, input 0 has ", input.dim(input.rank() - 1),
                                                     " channels"));
    }
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

// Rounds numbers to values that a code can represent. The range is shifted so that 0 has an exact code.
//
//   output = floor((clamp(x, min, max) - min) / step - code of 0 + 1/2) * step
//
// Halves are rounded up. If inputs give one range for all channels, TensorFlow divides by the step; otherwise it
// multiplies by the inverse.
class FakeQuant {
 public:
  FakeQuant(const FakeQuantState& state, float min, float max) {
    is_zero_ = min == 0 && max == 0;
    step_ = (max - min) / (state.highest - state.lowest);
    inverse_ = (state.highest - state.lowest) / (max - min);
    const float zero_point = state.lowest - min / step_;
    const float nudged = zero_point < state.lowest    ? state.lowest
                         : zero_point > state.highest ? state.highest
                                                      : std::round(zero_point);
    min_ = (state.lowest - nudged) * step_;
    max_ = (state.highest - nudged) * step_;
    zero_ = std::floor(-min_ * inverse_ + 0.5f);
  }
  float Multiplied(float x) const {
    return is_zero_ ? 0 : std::floor((Clamped(x) - min_) * inverse_ - zero_ + 0.5f) * step_;
  }
  float Divided(float x) const { return is_zero_ ? 0 : std::floor((Clamped(x) - min_) / step_ - zero_ + 0.5f) * step_; }

 private:
  float Clamped(float x) const { return x < min_ ? min_ : x > max_ ? max_ : x; }

  bool is_zero_;
  float step_, inverse_, min_, max_, zero_;
};

template <typename Round>
void RoundAll(ComputeContext* context, Round round) {
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 16 << 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = round(x[i]);
  });
}

absl::Status ComputeFakeQuantArgs(ComputeContext* context) {
  const auto& state = context->state<FakeQuantState>();
  const FakeQuant quantize(state, state.min, state.max);
  RoundAll(context, [&](float x) { return quantize.Multiplied(x); });
  return absl::OkStatus();
}

absl::Status ComputeFakeQuantVars(ComputeContext* context) {
  const FakeQuant quantize(context->state<FakeQuantState>(), *context->input<float>(1), *context->input<float>(2));
  RoundAll(context, [&](float x) { return quantize.Divided(x); });
  return absl::OkStatus();
}

absl::Status ComputeFakeQuantChannels(ComputeContext* context) {
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  const int64_t channels = context->input_shape(1).dim(0), count = context->input_shape(0).num_elements();
  for (int64_t c = 0; c < channels; ++c) {
    const FakeQuant quantize(context->state<FakeQuantState>(), context->input<float>(1)[c],
                             context->input<float>(2)[c]);
    for (int64_t i = c; i < count; i += channels) y[i] = quantize.Multiplied(x[i]);
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(FakeQuantWithMinMaxArgs) {
  return Kernel("inputs rounded to the nearest of 2^num_bits levels from min to max")
      .InPlace(0)
      .Prepare(PrepareFakeQuantArgs)
      .Compute(ComputeFakeQuantArgs);
}

DEFINE_KERNEL(FakeQuantWithMinMaxVars) {
  return Kernel("inputs rounded to the nearest of 2^num_bits levels from min to max")
      .InPlace(0)
      .Prepare(PrepareFakeQuantVars)
      .Compute(ComputeFakeQuantVars);
}

DEFINE_KERNEL(FakeQuantWithMinMaxVarsPerChannel) {
  return Kernel("inputs rounded to the nearest of 2^num_bits levels from min to max, per channel")
      .InPlace(0)
      .Prepare(PrepareFakeQuantChannels)
      .Compute(ComputeFakeQuantChannels);
}

}  // namespace permafrost
