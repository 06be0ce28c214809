// RequantizationRangePerChannel and RequantizePerChannel: conversion of 32-bit sums, with a range per channel, to 8-bit
// codes with one range. Ranges are symmetric: code 0 represents 0, and only the larger end of a range matters.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {
namespace {

constexpr float kCodes = 2147483648.f;  // 2^31, the number of codes on one side of 0.

float LargerEnd(Range range) { return std::max(std::abs(range.min), std::abs(range.max)); }

// Returns InvalidArgument unless inputs 1 and 2 have the ends of one range per channel of input 0, or of one range for
// all.
absl::Status RequireChannelRanges(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 4));
  for (int i : {1, 2}) {
    const Shape& range = context->input_shape(i);
    if (range.rank() > 1 || range.num_elements() != input.dim(3)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has the shape ", range.ToString(),
                                                     ", expected one end of a range for each of ", input.dim(3),
                                                     " channels"));
    }
  }
  return absl::OkStatus();
}

Range ChannelRange(const ComputeContext& context, int64_t channel) {
  return {context.input<float>(1)[channel], context.input<float>(2)[channel]};
}

// --- RequantizationRangePerChannel -----------------------------------------------------------------------------------

struct RangeState : public KernelState {
  float most = 0;  // Attr clip_value_max.
};

absl::Status PrepareRange(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireChannelRanges(context));
  auto state = std::make_unique<RangeState>();
  PF_ASSIGN_OR_RETURN(state->most, FloatAttr(context->node(), "clip_value_max"));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape()));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, Shape()));
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(context->input_shape(0).dim(3), sizeof(int64_t)).status());
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeRange(ComputeContext* context) {
  const auto* codes = context->input_bits<int32_t>(0);
  const int64_t channels = context->input_shape(0).dim(3), count = context->input_shape(0).num_elements();
  auto* largest = reinterpret_cast<int64_t*>(context->scratch());  // By channel, the largest magnitude.
  std::fill_n(largest, channels, int64_t{0});
  bool has_negative = false;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t code = codes[i];
    has_negative |= code < 0;
    largest[i % channels] = std::max(largest[i % channels], code < 0 ? -code : code);
  }
  float end = 0;
  for (int64_t c = 0; c < channels; ++c) {
    end = std::max(end, LargerEnd(ChannelRange(*context, c)) * static_cast<float>(largest[c]) / kCodes);
  }
  end = std::min(end, context->state<RangeState>().most);
  SetRangeOutput(context, {has_negative ? -end : 0.f, end}, 0);
  return absl::OkStatus();
}

// --- RequantizePerChannel --------------------------------------------------------------------------------------------

absl::Status PrepareRequantize(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireChannelRanges(context));
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 3, 2));
  context->SetOutputShape(0, context->input_shape(0));
  SetRangeOutputShapes(context);
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(context->input_shape(0).dim(3)).status());
  parts.Request(context);
  return absl::OkStatus();
}

template <typename Code>
void Requantize(ComputeContext* context, float target) {
  const auto* codes = context->input_bits<int32_t>(0);
  auto* narrow = context->output_bits<Code>(0);
  const int64_t channels = context->input_shape(0).dim(3);
  float* scales = reinterpret_cast<float*>(context->scratch());
  const auto highest = static_cast<float>(kHighest<Code>);
  for (int64_t c = 0; c < channels; ++c) {
    scales[c] = highest * (LargerEnd(ChannelRange(*context, c)) / target / kCodes);
  }
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 16 << 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float scaled = static_cast<float>(codes[i]) * scales[i % channels];
      // Rounds halves to even.
      narrow[i] = static_cast<Code>(std::nearbyint(std::clamp(scaled, static_cast<float>(kLowest<Code>), highest)));
    }
  });
}

absl::Status ComputeRequantize(ComputeContext* context) {
  const Range to = RangeInput(*context, 3);
  const float target = LargerEnd(to);
  if (!(target > 0 && std::isfinite(target))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the requested range is from ", to.min, " to ", to.max, ", expected an end other than 0"));
  }
  for (int64_t c = 0; c < context->input_shape(0).dim(3); ++c) {
    const Range range = ChannelRange(*context, c);
    if (!std::isfinite(range.min) || !std::isfinite(range.max)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range of channel ", c, " is from ", range.min, " to ", range.max, ", expected numbers"));
    }
  }
  if (context->output_at(0).dtype == DType::kQInt8) {
    Requantize<int8_t>(context, target);
  } else {
    Requantize<uint8_t>(context, target);
  }
  SetRangeOutput(context, to);
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(RequantizationRangePerChannel) {
  return Kernel(
             "a symmetric range for input, or [0, max] if no value is negative; the maximum is at most clip_value_max")
      .Types<QInt32>("T")
      .Prepare(PrepareRange)
      .Compute(ComputeRange);
}

DEFINE_KERNEL(RequantizePerChannel) {
  return Kernel("input as codes of the requested range, with zero point 0")
      .Types<QInt32>("T")
      .Types<QInt8, QUint8>("out_type")
      .Prepare(PrepareRequantize)
      .Compute(ComputeRequantize);
}

}  // namespace permafrost
