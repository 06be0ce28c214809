// UniformQuantize and UniformDequantize: conversion between numbers and codes, with one scale or one for each slice.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// Elements of a piece that is worth a thread of its own: about 5 microseconds.
constexpr int64_t kGrain = 8 << 10;

// The integer in which codes of a type are stored.
template <typename T>
struct Stored {
  using type = T;
};
template <>
struct Stored<QInt8> {
  using type = int8_t;
};
template <>
struct Stored<QUint8> {
  using type = uint8_t;
};
template <>
struct Stored<QInt16> {
  using type = int16_t;
};
template <>
struct Stored<QInt32> {
  using type = int32_t;
};

struct UniformState : public KernelState {
  int64_t slices = 1;  // Size of the axis.
  int64_t inner = 1;   // Elements of a slice that are adjacent.
  int64_t lowest = 0, highest = 0;
};

absl::Status PrepareUniform(PrepareContext* context) {
  const Node& node = context->node();
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<UniformState>();
  PF_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(node, "quantization_axis"));
  PF_ASSIGN_OR_RETURN(state->lowest, IntAttr(node, "quantization_min_val"));
  PF_ASSIGN_OR_RETURN(state->highest, IntAttr(node, "quantization_max_val"));
  if (state->lowest > state->highest) {
    return absl::InvalidArgumentError(
        absl::StrCat("codes are from ", state->lowest, " to ", state->highest, ", which is no range"));
  }
  if (axis < -1 || axis >= input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'quantization_axis' is ", axis, ", expected -1 or a dimension of ", input.ToString()));
  }
  if (axis >= 0) {
    state->slices = input.dim(static_cast<int>(axis));
    state->inner = ProductOfDims(input, static_cast<int>(axis) + 1, input.rank());
  }
  for (int i = 1; i <= 2; ++i) {
    const Shape& shape = context->input_shape(i);
    if (axis < 0 ? shape.num_elements() != 1 || shape.rank() > 1 : shape.rank() != 1 || shape.dim(0) != state->slices) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", shape.ToString(), ", expected ",
                                                     axis < 0 ? 1 : state->slices, " elements"));
    }
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

// Calls convert(begin, end, slice) for ranges of elements of one slice.
template <typename Convert>
void ForEachRange(ComputeContext* context, const UniformState& state, Convert convert) {
  const int64_t count = context->input_shape(0).num_elements();
  if (count == 0) return;
  context->threads().ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    if (state.slices == 1) return convert(begin, end, 0);
    while (begin < end) {
      const int64_t range = begin / state.inner;
      const int64_t stop = std::min(end, (range + 1) * state.inner);
      convert(begin, stop, range % state.slices);
      begin = stop;
    }
  });
}

// Products of a float scale and a code of at most 16 bits are exact in double, so that only the conversion to float
// rounds. With several scales the product is a float, as in LiteRT; both are the same for codes of at most 24 bits.
absl::Status ComputeDequantize(ComputeContext* context) {
  const auto& state = context->state<UniformState>();
  const auto* scales = context->input<float>(1);
  const auto* points = context->input<int32_t>(2);
  auto* output = context->output<float>(0);
  DispatchOn<QInt8, QUint8, QInt16, QInt32, int8_t, uint8_t, int16_t, int32_t, int64_t>(
      context->input_at(0).dtype, [&](auto tag) {
        using Code = typename Stored<typename decltype(tag)::type>::type;
        const auto* input = context->input_bits<Code>(0);
        ForEachRange(context, state, [&](int64_t begin, int64_t end, int64_t slice) {
          const double scale = scales[slice], point = points[slice];
          Multiversion([&]() PF_INLINE {
            for (int64_t i = begin; i < end; ++i) {
              output[i] = static_cast<float>(scale * (static_cast<double>(input[i]) - point));
            }
          });
        });
      });
  return absl::OkStatus();
}

// Integers up to 2^24 are floats, so that codes can be limited before they are rounded.
constexpr double kMostExact = 1 << 24;

template <typename Code>
PF_INLINE inline void QuantizeFloats(const float* input, int64_t begin, int64_t end, float scale, int32_t point,
                                     int32_t lowest, int32_t highest, Code* output) {
  const auto low = static_cast<float>(lowest - point), high = static_cast<float>(highest - point);
  for (int64_t i = begin; i < end; ++i) {
    const float quotient = input[i] / scale;
    // The limits decide after NaN, whose code is the zero point where that is a code.
    const float limited = std::min(std::max(quotient == quotient ? quotient : 0.0f, low), high);
    const auto whole = static_cast<int32_t>(limited);
    const float rest = limited - static_cast<float>(whole);  // Exact.
    output[i] = static_cast<Code>(whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0) + point);
  }
}

// Halves are rounded away from zero; NaN becomes the zero point.
absl::Status ComputeQuantize(ComputeContext* context) {
  const auto& state = context->state<UniformState>();
  const auto* input = context->input<float>(0);
  const auto* scales = context->input<float>(1);
  const auto* points = context->input<int32_t>(2);
  DispatchOn<QInt8, QUint8, QInt16, QInt32, int8_t, uint8_t, int16_t, int32_t>(
      context->output_at(0).dtype, [&](auto tag) {
        using Code = typename Stored<typename decltype(tag)::type>::type;
        auto* output = context->output_bits<Code>(0);
        constexpr int64_t kLow = std::numeric_limits<Code>::min(), kHigh = std::numeric_limits<Code>::max();
        const auto lowest = static_cast<double>(std::clamp(state.lowest, kLow, kHigh));
        const auto highest = static_cast<double>(std::clamp(state.highest, kLow, kHigh));
        ForEachRange(context, state, [&](int64_t begin, int64_t end, int64_t slice) {
          const float scale = scales[slice];
          const double point = points[slice];
          if (std::max(std::abs(lowest), std::abs(highest)) + std::abs(point) <= kMostExact) {
            // Its parameters are not in memory that a store of a code could change, as the members of a lambda are.
            Multiversion([&]() PF_INLINE {
              QuantizeFloats(input, begin, end, scale, points[slice], static_cast<int32_t>(lowest),
                             static_cast<int32_t>(highest), output);
            });
            return;
          }
          for (int64_t i = begin; i < end; ++i) {
            const float quotient = input[i] / scale;
            const double code = std::isnan(quotient) ? point : std::round(quotient) + point;
            output[i] = static_cast<Code>(code < lowest ? lowest : code > highest ? highest : code);
          }
        });
      });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(UniformDequantize) {
  return Kernel("(code - zero_point) * scale")
      .Types<QInt8, QUint8, QInt16, QInt32, int8_t, uint8_t, int16_t, int32_t, int64_t>("Tin")
      .Types<float>("Tout")
      .Prepare(PrepareUniform)
      .Compute(ComputeDequantize);
}

DEFINE_KERNEL(UniformQuantize) {
  return Kernel("x / scale rounded half away from zero, + zero_point, clamped to the range of codes")
      .Types<float>("Tin")
      .Types<QInt8, QUint8, QInt16, QInt32, int8_t, uint8_t, int16_t, int32_t>("Tout")
      .Prepare(PrepareUniform)
      .Compute(ComputeQuantize);
}

}  // namespace permafrost
