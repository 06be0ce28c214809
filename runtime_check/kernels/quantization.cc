// Dequantize, QuantizeV2 and the three FakeQuantWithMinMax ops: between real numbers and codes of few bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

struct QuantizationState : public KernelState {
  Mode mode = Mode::kMinCombined;
  bool half_to_even = false;  // How halves are rounded; else away from zero.
  bool narrow_range = false;
  float ensure_minimum_range = 0;
  // The tensor as [outer][slices][inner]: each slice has its own range.
  int64_t outer = 1, slices = 1, inner = 1;
};

// Reads what Dequantize and QuantizeV2 share, and checks the shapes of the ranges (inputs 1 and 2).
absl::Status PrepareRanges(PrepareContext* context, QuantizationState* state) {
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(node, "mode"));
  if (mode == "MIN_COMBINED") {
    state->mode = Mode::kMinCombined;
  } else if (mode == "MIN_FIRST") {
    state->mode = Mode::kMinFirst;
  } else if (mode == "SCALED") {
    state->mode = Mode::kScaled;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'mode' is '", mode, "', expected 'MIN_COMBINED', 'MIN_FIRST' or 'SCALED'"));
  }
  PF_ASSIGN_OR_RETURN(state->narrow_range, BoolAttr(node, "narrow_range"));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(node, "axis"));
  if (axis < -1 || axis >= input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'axis' is ", axis, ", expected -1 or an axis of ", input.ToString()));
  }
  if (axis >= 0) {
    state->outer = ProductOfDims(input, 0, static_cast<int>(axis));
    state->slices = input.dim(static_cast<int>(axis));
    state->inner = ProductOfDims(input, static_cast<int>(axis) + 1, input.rank());
  } else {
    state->inner = input.num_elements();
  }
  for (int i = 1; i <= 2; ++i) {
    const Shape& range = context->input_shape(i);
    PF_ASSIGN_OR_RETURN(const int64_t count, range.CheckedNumElements());
    if (count != state->slices || range.rank() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", range.ToString(), ", expected ",
                                                     axis >= 0 ? absl::StrCat("[", state->slices, "]") : "a scalar"));
    }
  }
  return absl::OkStatus();
}

// Calls body(slice, first element, element count) for each stretch of elements with one range.
template <typename Body>
void ForEachStretch(ComputeContext* context, const QuantizationState& state, Body body) {
  if (state.slices == 1) {
    context->threads().ParallelFor(state.outer * state.inner, 16 << 10,
                                   [&](int64_t begin, int64_t end) { body(0, begin, end - begin); });
    return;
  }
  if (state.inner == 0) return;  // There may be any number of empty stretches.
  for (int64_t i = 0; i < state.outer * state.slices; ++i) body(i % state.slices, i * state.inner, state.inner);
}

// The integer type of the codes.
template <typename Element>
using CodeOf = decltype(Element().value);

// --- Dequantize ------------------------------------------------------------------------------------------------------

// x = code * scale + offset.
struct Line {
  float scale, offset;
};

template <typename Code>
Line LineOf(const QuantizationState& state, float min, float max) {
  using Limits = std::numeric_limits<Code>;
  const auto lowest = static_cast<float>(Limits::min()), highest = static_cast<float>(Limits::max());
  switch (state.mode) {
    case Mode::kMinCombined: {
      const float scale = (max - min) / (highest - lowest);
      const float half_range = std::is_signed_v<Code> ? (highest - lowest + 1) / 2 : 0.f;
      return {scale, half_range * scale + min};
    }
    case Mode::kMinFirst: {
      // The lowest code stands for the multiple of the step that is nearest to min.
      const double steps = std::ldexp(1.0, 8 * sizeof(Code)) - 1;
      const auto scale = static_cast<float>((max - min) / steps);
      const float rounded = min == max ? min : std::round(min / scale) * scale;
      return {scale, rounded - lowest * scale};
    }
    case Mode::kScaled:
      break;
  }
  if (!std::is_signed_v<Code>) return {max / highest, 0};
  return {std::max(min / (lowest + (state.narrow_range ? 1 : 0)), max / highest), 0};
}

absl::Status PrepareDequantize(PrepareContext* context) {
  auto state = std::make_unique<QuantizationState>();
  PF_RETURN_IF_ERROR(PrepareRanges(context, state.get()));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, context->input_shape(0)));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeDequantize(ComputeContext* context) {
  const auto& state = context->state<QuantizationState>();
  const bool to_float = context->output_at(0).dtype == DType::kFloat;
  DispatchOn<QInt8, QUint8, QInt16, QUint16, QInt32>(context->input_at(0).dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    const Element* codes = context->input<Element>(0);
    ForEachStretch(context, state, [&](int64_t slice, int64_t first, int64_t count) {
      const Line line =
          LineOf<CodeOf<Element>>(state, context->input<float>(1)[slice], context->input<float>(2)[slice]);
      for (int64_t i = first; i < first + count; ++i) {
        const float x = static_cast<float>(codes[i].value) * line.scale + line.offset;
        if (to_float) {
          context->output<float>(0)[i] = x;
        } else {
          context->output<BFloat16>(0)[i] = ToBFloat16(x);
        }
      }
    });
  });
  return absl::OkStatus();
}

// --- QuantizeV2 ------------------------------------------------------------------------------------------------------

absl::Status PrepareQuantize(PrepareContext* context) {
  auto state = std::make_unique<QuantizationState>();
  PF_RETURN_IF_ERROR(PrepareRanges(context, state.get()));
  PF_ASSIGN_OR_RETURN(state->ensure_minimum_range, FloatAttr(context->node(), "ensure_minimum_range"));
  PF_ASSIGN_OR_RETURN(const std::string round_mode, StringAttr(context->node(), "round_mode"));
  if (round_mode != "HALF_AWAY_FROM_ZERO" && round_mode != "HALF_TO_EVEN") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'round_mode' is '", round_mode, "', expected 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN'"));
  }
  state->half_to_even = round_mode == "HALF_TO_EVEN";
  if (state->half_to_even && state->mode != Mode::kScaled) {
    return absl::InvalidArgumentError("attr 'round_mode' is 'HALF_TO_EVEN', which is for the mode SCALED only");
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, context->input_shape(0)));
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(context->node(), "axis"));
  for (int i = 1; i <= 2; ++i) context->SetOutputShape(i, axis >= 0 ? Shape{state->slices} : Shape());
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Quantises one stretch and says which range its codes span.
template <typename Code>
void QuantizeStretch(const QuantizationState& state, float* min, float* max, int64_t count, const float* x,
                     Code* codes) {
  using Limits = std::numeric_limits<Code>;
  // As double, since float does not hold the limits of 32 bits.
  const double lowest = Limits::min(), highest = Limits::max();
  const auto store = [&](double value, Code* code) {
    // NaN has no code; it becomes the lowest.
    *code = value > lowest ? value < highest ? static_cast<Code>(value) : Limits::max() : Limits::min();
  };
  switch (state.mode) {
    case Mode::kMinCombined: {
      const float scale = static_cast<float>(highest - lowest) / (*max - *min);
      const auto half_range = static_cast<float>(std::is_signed_v<Code> ? (highest - lowest + 1) / 2 : 0);
      for (int64_t i = 0; i < count; ++i) {
        store(std::round((std::clamp(x[i], *min, *max) - *min) * scale - half_range), &codes[i]);
      }
      return;
    }
    case Mode::kMinFirst: {
      const double steps = std::ldexp(1.0, 8 * sizeof(Code)) - 1;
      const auto scale = static_cast<float>(*max == *min ? 0.0 : steps / (*max - *min));
      const double first = std::round(*min * static_cast<double>(scale)) - lowest;
      for (int64_t i = 0; i < count; ++i) store(std::round(x[i] * scale) - first, &codes[i]);
      return;
    }
    case Mode::kScaled:
      break;
  }
  const double bottom = lowest + (state.narrow_range ? 1 : 0);
  const float from_min = bottom * *min > 0 ? static_cast<float>(bottom / *min) : std::numeric_limits<float>::max();
  const float from_max = highest * *max > 0 ? static_cast<float>(highest / *max) : std::numeric_limits<float>::max();
  const float scale = std::min(from_min, from_max);
  *min = static_cast<float>(bottom / scale);
  *max = static_cast<float>(highest / scale);
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = std::clamp(x[i], *min, *max) * scale;
    store(state.half_to_even ? std::nearbyint(scaled) : std::round(scaled), &codes[i]);
  }
}

absl::Status ComputeQuantize(ComputeContext* context) {
  const auto& state = context->state<QuantizationState>();
  float* output_min = context->output<float>(1);
  float* output_max = context->output<float>(2);
  for (int64_t slice = 0; slice < state.slices; ++slice) {
    const float min = context->input<float>(1)[slice], max = context->input<float>(2)[slice];
    if (!(min <= max) || !std::isfinite(min) || !std::isfinite(max)) {
      return absl::InvalidArgumentError(absl::StrCat("the range is from ", min, " to ", max));
    }
    // The range holds 0 and is not so narrow that codes would drown in rounding.
    output_min[slice] = std::min(0.f, min);
    const float least = std::max(1.f, std::max(std::abs(min), std::abs(max))) * state.ensure_minimum_range;
    output_max[slice] = std::max(0.f, std::max(max, output_min[slice] + least));
  }
  DispatchOn<QInt8, QUint8, QInt16, QUint16, QInt32>(context->output_at(0).dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    using Code = CodeOf<Element>;
    const float* x = context->input<float>(0);
    Code* codes = reinterpret_cast<Code*>(context->output<Element>(0));
    // Each stretch computes the range of its codes anew, from the range that was asked for.
    ForEachStretch(context, state, [&](int64_t slice, int64_t first, int64_t count) {
      float min = output_min[slice], max = output_max[slice];
      QuantizeStretch<Code>(state, &min, &max, count, x + first, codes + first);
    });
    for (int64_t slice = 0; slice < state.slices; ++slice) {
      QuantizeStretch<Code>(state, &output_min[slice], &output_max[slice], 0, x, codes);
    }
  });
  return absl::OkStatus();
}

// --- FakeQuantWithMinMax ---------------------------------------------------------------------------------------------

struct FakeQuantState : public KernelState {
  float lowest = 0, highest = 255;  // Codes.
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

// Rounds numbers to what a code could stand for. The range is moved so that 0 has a code of its own.
class FakeQuant {
 public:
  FakeQuant(const FakeQuantState& state, float min, float max) {
    is_zero_ = min == 0 && max == 0;
    scale_ = (max - min) / (state.highest - state.lowest);
    const float zero_point = state.lowest - min / scale_;
    const float nudged = zero_point < state.lowest    ? state.lowest
                         : zero_point > state.highest ? state.highest
                                                      : std::round(zero_point);
    min_ = (state.lowest - nudged) * scale_;
    max_ = (state.highest - nudged) * scale_;
    inverse_ = 1 / scale_;
  }
  float operator()(float x) const {
    if (is_zero_) return 0;
    const float clamped = x < min_ ? min_ : x > max_ ? max_ : x;
    return std::floor((clamped - min_) * inverse_ + 0.5f) * scale_ + min_;
  }

 private:
  bool is_zero_;
  float scale_, inverse_, min_, max_;
};

void FakeQuantAll(ComputeContext* context, const FakeQuant& quantize) {
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 16 << 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = quantize(x[i]);
  });
}

absl::Status ComputeFakeQuantArgs(ComputeContext* context) {
  const auto& state = context->state<FakeQuantState>();
  FakeQuantAll(context, FakeQuant(state, state.min, state.max));
  return absl::OkStatus();
}

absl::Status ComputeFakeQuantVars(ComputeContext* context) {
  FakeQuantAll(context,
               FakeQuant(context->state<FakeQuantState>(), *context->input<float>(1), *context->input<float>(2)));
  return absl::OkStatus();
}

absl::Status ComputeFakeQuantChannels(ComputeContext* context) {
  const float* x = context->input<float>(0);
  float* y = context->output<float>(0);
  const int64_t channels = context->input_shape(1).dim(0), count = context->input_shape(0).num_elements();
  for (int64_t c = 0; c < channels; ++c) {
    const FakeQuant quantize(context->state<FakeQuantState>(), context->input<float>(1)[c],
                             context->input<float>(2)[c]);
    for (int64_t i = c; i < count; i += channels) y[i] = quantize(x[i]);
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Dequantize) {
  return Kernel("output = input * scale + offset, both from the range and the mode")
      .Types<QInt8, QUint8, QInt16, QUint16, QInt32>("T")
      .Types<float, BFloat16>("dtype")
      .Prepare(PrepareDequantize)
      .Compute(ComputeDequantize);
}

DEFINE_KERNEL(QuantizeV2) {
  return Kernel("output = round((input - offset) / scale), both from the range and the mode")
      .Types<QInt8, QUint8, QInt16, QUint16, QInt32>("T")
      .Prepare(PrepareQuantize)
      .Compute(ComputeQuantize);
}

DEFINE_KERNEL(FakeQuantWithMinMaxArgs) {
  return Kernel("inputs rounded to the nearest of 2^num_bits steps from min to max")
      .InPlace(0)
      .Prepare(PrepareFakeQuantArgs)
      .Compute(ComputeFakeQuantArgs);
}

DEFINE_KERNEL(FakeQuantWithMinMaxVars) {
  return Kernel("inputs rounded to the nearest of 2^num_bits steps from min to max")
      .InPlace(0)
      .Prepare(PrepareFakeQuantVars)
      .Compute(ComputeFakeQuantVars);
}

DEFINE_KERNEL(FakeQuantWithMinMaxVarsPerChannel) {
  return Kernel("inputs rounded to the nearest of 2^num_bits steps from min to max, channel by channel")
      .InPlace(0)
      .Prepare(PrepareFakeQuantChannels)
      .Compute(ComputeFakeQuantChannels);
}

}  // namespace permafrost
