// Dequantize and QuantizeV2: conversion between real numbers and codes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

struct QuantizationState : public KernelState {
  Mode mode = Mode::kMinCombined;
  bool half_to_even = false;  // Rounds halves to even; otherwise away from zero.
  bool narrow_range = false;
  float ensure_minimum_range = 0;
  // The tensor as [outer][slices][inner]: each slice has its own range.
  int64_t outer = 1, slices = 1, inner = 1;
};

// Reads the common attributes of Dequantize and QuantizeV2, and checks the shapes of the ranges (inputs 1 and 2).
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

// --- Dequantize ------------------------------------------------------------------------------------------------------

// Half of the number of codes for signed types, whose codes are half negative; else 0.
template <typename Code>
constexpr float kHalfOfCodes = std::is_signed_v<Code>
                                   ? (static_cast<float>(kHighest<Code>) - static_cast<float>(kLowest<Code>) + 1) / 2
                                   : 0.f;

// Calls write(element, number) for each of `count` codes of one range.
//
//   MIN_COMBINED   (code + half of codes) * (max - min) / (highest - lowest) + min
//   MIN_FIRST      as CodesToReals: the lowest code represents the multiple of the step that is nearest to min
//   SCALED         code * the larger of min / lowest and max / highest, so that code 0 represents 0
template <typename Code, typename Write>
void DequantizeStretch(const QuantizationState& state, Range range, int64_t count, const Code* codes, Write write) {
  const auto lowest = static_cast<float>(kLowest<Code>), highest = static_cast<float>(kHighest<Code>);
  switch (state.mode) {
    case Mode::kMinCombined: {
      const float scale = (range.max - range.min) / (highest - lowest);
      for (int64_t i = 0; i < count; ++i) {
        write(i, (static_cast<float>(codes[i]) + kHalfOfCodes<Code>)*scale + range.min);
      }
      return;
    }
    case Mode::kMinFirst: {
      const CodesToReals<Code> to_reals(range);
      for (int64_t i = 0; i < count; ++i) write(i, to_reals(codes[i]));
      return;
    }
    case Mode::kScaled:
      break;
  }
  const float bottom = lowest + (state.narrow_range ? 1 : 0);
  const float scale = std::is_signed_v<Code> ? std::max(range.min / bottom, range.max / highest) : range.max / highest;
  for (int64_t i = 0; i < count; ++i) write(i, static_cast<float>(codes[i]) * scale);
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
    using Code = CodeOf<Element>;
    const auto* codes = context->input_bits<Code>(0);
    ForEachStretch(context, state, [&](int64_t slice, int64_t first, int64_t count) {
      const Range range = {context->input<float>(1)[slice], context->input<float>(2)[slice]};
      if (to_float) {
        float* output = context->output<float>(0) + first;
        DequantizeStretch(state, range, count, codes + first, [&](int64_t i, float x) { output[i] = x; });
      } else {
        BFloat16* output = context->output<BFloat16>(0) + first;
        DequantizeStretch(state, range, count, codes + first, [&](int64_t i, float x) { output[i] = ToBFloat16(x); });
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

// Quantises one stretch, and sets the range that its codes span.
//
//   MIN_COMBINED   (x - min) * (highest - lowest) / (max - min) - half of codes, halves rounded up (unsigned) or away
//                  from zero (signed)
//   MIN_FIRST      as RealsToCodes, halves rounded away from zero
//   SCALED         x * the smaller of lowest / min and highest / max; round_mode selects the rounding of halves
//
// NaN has no code and becomes the lowest. (In TensorFlow the code of NaN depends on its position in the tensor.)
template <typename Code>
void QuantizeStretch(const QuantizationState& state, float* min, float* max, int64_t count, const float* x,
                     Code* codes) {
  // In double, since float cannot represent the limits of 32-bit codes.
  const auto lowest = static_cast<double>(kLowest<Code>), highest = static_cast<double>(kHighest<Code>);
  const auto store = [&](double value, Code* code) {
    *code = static_cast<Code>(value > lowest ? value < highest ? static_cast<int64_t>(value) : kHighest<Code>
                                             : kLowest<Code>);
  };
  switch (state.mode) {
    case Mode::kMinCombined: {
      const auto scale = static_cast<float>((highest - lowest) / (*max - *min));
      for (int64_t i = 0; i < count; ++i) {
        const float steps = (std::clamp(x[i], *min, *max) - *min) * scale;
        store(std::is_signed_v<Code> ? std::round(steps - kHalfOfCodes<Code>) : steps + 0.5f, &codes[i]);
      }
      return;
    }
    case Mode::kMinFirst: {
      const RealsToCodes<Code> to_codes({*min, *max});
      for (int64_t i = 0; i < count; ++i) codes[i] = to_codes(x[i]);
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
      return absl::InvalidArgumentError(
          absl::StrCat("'max_range' must not be below 'min_range', but the range is from ", min, " to ", max));
    }
    // The range contains 0, and is wide enough that rounding errors do not dominate.
    output_min[slice] = std::min(0.f, min);
    const float least = std::max(1.f, std::max(std::abs(min), std::abs(max))) * state.ensure_minimum_range;
    output_max[slice] = std::max(0.f, std::max(max, output_min[slice] + least));
  }
  DispatchOn<QInt8, QUint8, QInt16, QUint16, QInt32>(context->output_at(0).dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    using Code = CodeOf<Element>;
    const float* x = context->input<float>(0);
    Code* codes = reinterpret_cast<Code*>(context->output<Element>(0));
    // Each stretch computes the range of its codes from the requested range.
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

}  // namespace

DEFINE_KERNEL(Dequantize) {
  return Kernel("output = input * scale + offset, with scale and offset derived from the range and the mode")
      .Types<QInt8, QUint8, QInt16, QUint16, QInt32>("T")
      .Types<float, BFloat16>("dtype")
      .Prepare(PrepareDequantize)
      .Compute(ComputeDequantize);
}

DEFINE_KERNEL(QuantizeV2) {
  return Kernel("output = round((input - offset) / scale), with scale and offset derived from the range and the mode")
      .Types<QInt8, QUint8, QInt16, QUint16, QInt32>("T")
      .Prepare(PrepareQuantize)
      .Compute(ComputeQuantize);
}

}  // namespace permafrost
