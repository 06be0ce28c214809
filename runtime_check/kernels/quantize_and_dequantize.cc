// QuantizeAndDequantize and its versions 2 to 4: round numbers to the values that integers of few bits can represent,
// including 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

struct RoundingState : public KernelState {
  bool is_signed = true, range_given = false, narrow_range = false;
  bool half_up = false;    // Rounds halves up; otherwise to even.
  int64_t num_bits = 8;    // 0 if it is input 3.
  float min = 0, max = 0;  // Only for the first version, which has the range in attributes.
  // The tensor as [outer][slices][inner]: each slice has its own range.
  int64_t outer = 1, slices = 1, inner = 1;
};

// Checks that 2^num_bits, with the sign, fits in int64.
absl::Status CheckBits(int64_t num_bits, bool is_signed) {
  if (num_bits > 0 && num_bits < (is_signed ? 62 : 63)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'num_bits' is ", num_bits, ", expected 1 to ", is_signed ? 61 : 62));
}

absl::Status PrepareAll(PrepareContext* context, std::unique_ptr<RoundingState> state, bool has_inputs) {
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(state->is_signed, BoolAttr(node, "signed_input"));
  PF_ASSIGN_OR_RETURN(state->range_given, BoolAttr(node, "range_given"));
  if (state->num_bits != 0) {
    PF_ASSIGN_OR_RETURN(state->num_bits, IntAttr(node, "num_bits"));
    PF_RETURN_IF_ERROR(CheckBits(state->num_bits, state->is_signed));
  }
  int64_t axis = -1;
  if (has_inputs) {
    PF_ASSIGN_OR_RETURN(axis, IntAttr(node, "axis"));
    PF_ASSIGN_OR_RETURN(state->narrow_range, BoolAttr(node, "narrow_range"));
  }
  if (axis < -1 || axis >= input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'axis' is ", axis, ", expected -1 or an axis of ", input.ToString()));
  }
  if (axis < 0) {
    state->inner = input.num_elements();
  } else {
    state->outer = ProductOfDims(input, 0, static_cast<int>(axis));
    state->slices = input.dim(static_cast<int>(axis));
    state->inner = ProductOfDims(input, static_cast<int>(axis) + 1, input.rank());
  }
  for (int i = 1; has_inputs && state->range_given && i <= 2; ++i) {
    const Shape& range = context->input_shape(i);
    if (range.rank() > 1 || range.num_elements() != state->slices) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", range.ToString(), ", expected ",
                                                     axis < 0 ? "a scalar" : absl::StrCat("[", state->slices, "]")));
    }
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status PrepareFirst(PrepareContext* context) {
  auto state = std::make_unique<RoundingState>();
  PF_ASSIGN_OR_RETURN(state->min, FloatAttr(context->node(), "input_min"));
  PF_ASSIGN_OR_RETURN(state->max, FloatAttr(context->node(), "input_max"));
  return PrepareAll(context, std::move(state), false);
}

// The Prepare function of the second and the fourth version.
absl::Status PrepareWithRoundMode(PrepareContext* context) {
  auto state = std::make_unique<RoundingState>();
  PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(context->node(), "round_mode"));
  if (mode != "HALF_TO_EVEN" && mode != "HALF_UP") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'round_mode' is '", mode, "', expected 'HALF_TO_EVEN' or 'HALF_UP'"));
  }
  state->half_up = mode == "HALF_UP";
  return PrepareAll(context, std::move(state), true);
}

absl::Status PrepareThird(PrepareContext* context) {
  auto state = std::make_unique<RoundingState>();
  state->num_bits = 0;
  if (context->input_shape(3).rank() > 1 || context->input_shape(3).num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 3 has the shape ", context->input_shape(3).ToString(), ", expected a scalar"));
  }
  return PrepareAll(context, std::move(state), true);
}

// Rounding to integers with a scale. The scale is the largest that keeps the range within the integers; the end of the
// range that does not determine the scale is extended to the last integer.
template <typename T>
class Rounding {
 public:
  Rounding(const RoundingState& state, int64_t num_bits, T min, T max) : min_(min), max_(max) {
    const int64_t half = int64_t{1} << (num_bits - 1);
    const int64_t lowest = state.is_signed ? -half + (state.narrow_range ? 1 : 0) : 0;
    const int64_t highest = state.is_signed ? half - 1 : 2 * half - 1;
    const auto bottom = static_cast<T>(lowest), top = static_cast<T>(highest);
    const T from_min = bottom * min > 0 ? bottom / min : std::numeric_limits<T>::max();
    const T from_max = top * max > 0 ? top / max : std::numeric_limits<T>::max();
    if (from_min < from_max) {
      scale_ = from_min;
      inverse_ = min / bottom;
      max_ = top * inverse_;
    } else {
      scale_ = from_max;
      inverse_ = max / top;
      min_ = bottom * inverse_;
    }
  }
  T Clamped(T x) const {
    const T below = x < max_ ? x : max_;
    return below > min_ ? below : min_;
  }
  T HalfToEven(T x) const { return std::nearbyint(x * scale_) * inverse_; }
  T HalfUp(T x) const { return std::floor(x * scale_ + T(0.5)) * inverse_; }

 private:
  T min_, max_, scale_, inverse_;
};

// Rounds a stretch of elements with one range.
template <typename T>
void RoundStretch(const RoundingState& state, const Rounding<T>& rounding, int64_t count, const T* x, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = state.range_given ? rounding.Clamped(x[i]) : x[i];
    y[i] = state.half_up ? rounding.HalfUp(value) : rounding.HalfToEven(value);
  }
}

template <typename T>
absl::Status RoundSlices(ComputeContext* context, const RoundingState& state, int64_t num_bits) {
  const T* x = context->input<T>(0);
  T* y = context->output<T>(0);
  const bool range_in_attrs = context->num_inputs() == 1;
  for (int64_t slice = 0; slice < state.slices; ++slice) {
    T min = static_cast<T>(state.min), max = static_cast<T>(state.max);
    if (!state.range_given) {
      min = std::numeric_limits<T>::infinity();
      max = -min;
      for (int64_t i = 0; i < state.outer; ++i) {
        const T* from = x + (i * state.slices + slice) * state.inner;
        for (int64_t j = 0; j < state.inner; ++j) {
          min = std::min(min, from[j]);
          max = std::max(max, from[j]);
        }
      }
    } else if (!range_in_attrs) {
      min = context->input<T>(1)[slice];
      max = context->input<T>(2)[slice];
    }
    if (state.range_given && !(min <= max)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'input_max' must not be below 'input_min', but the range is from ", min, " to ", max));
    }
    const Rounding<T> rounding(state, num_bits, min, max);
    if (state.slices == 1) {
      context->threads().ParallelFor(state.outer * state.inner, 16 << 10, [&](int64_t begin, int64_t end) {
        RoundStretch(state, rounding, end - begin, x + begin, y + begin);
      });
      break;
    }
    for (int64_t i = 0; i < state.outer; ++i) {
      const int64_t first = (i * state.slices + slice) * state.inner;
      RoundStretch(state, rounding, state.inner, x + first, y + first);
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeRounding(ComputeContext* context) {
  const auto& state = context->state<RoundingState>();
  int64_t num_bits = state.num_bits;
  if (num_bits == 0) {
    num_bits = *context->input<int32_t>(3);
    PF_RETURN_IF_ERROR(CheckBits(num_bits, state.is_signed));
  }
  if (context->input_shape(0).num_elements() == 0) return absl::OkStatus();
  return context->input_at(0).dtype == DType::kFloat ? RoundSlices<float>(context, state, num_bits)
                                                     : RoundSlices<double>(context, state, num_bits);
}

}  // namespace

DEFINE_KERNEL(QuantizeAndDequantize) {
  return Kernel("input rounded to the nearest of 2^num_bits levels of its range, which include 0")
      .Types<float, double>("T")
      .InPlace(0)
      .Prepare(PrepareFirst)
      .Compute(ComputeRounding);
}

DEFINE_KERNEL(QuantizeAndDequantizeV2) {
  return Kernel("input rounded to the nearest of 2^num_bits levels of its range, which include 0")
      .Types<float, double>("T")
      .InPlace(0)
      .Prepare(PrepareWithRoundMode)
      .Compute(ComputeRounding);
}

DEFINE_KERNEL(QuantizeAndDequantizeV3) {
  return Kernel("input rounded to the nearest of 2^num_bits levels of its range, which include 0")
      .Types<float, double>("T")
      .InPlace(0)
      .Prepare(PrepareThird)
      .Compute(ComputeRounding);
}

DEFINE_KERNEL(QuantizeAndDequantizeV4) {
  return Kernel("input rounded to the nearest of 2^num_bits levels of its range, which include 0")
      .Types<float, double>("T")
      .InPlace(0)
      .Prepare(PrepareWithRoundMode)
      .Compute(ComputeRounding);
}

}  // namespace permafrost
