// RequantizationRange, Requantize and QuantizeDownAndShrinkRange: conversion of 32-bit sums to 8-bit codes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

// Returns the range that the codes span, extended to include 0 at its lower end. Without codes it is the reverse of the
// whole range, as in TensorFlow.
Range UsedRange(const int32_t* codes, int64_t count, Range range) {
  int32_t least = kHighest<int32_t>, most = kLowest<int32_t>;
  for (int64_t i = 0; i < count; ++i) {
    least = std::min(least, codes[i]);
    most = std::max(most, codes[i]);
  }
  return {std::min(0.f, RealOf(least, range)), RealOf(most, range)};
}

// Converts 32-bit codes of one range to 8-bit codes of another, in fixed point with 16 fractional bits:
//
//   code8 = (((code32 * scale) >> 32) + middle - lowest + 1/2) >> 16
//
// `scale` is the number of 8-bit steps that the old range spans, `middle` the centre of the old range and `lowest` the
// new minimum, both in new steps. The shifts round down, so halves are rounded up. Two properties reproduce
// TensorFlow's results: codes beyond 2^24 lose the bits that a float cannot represent, and the product wraps around,
// which happens only if the ranges differ by a factor of more than 256.
class Narrowing {
 public:
  Narrowing(Range from, Range to) {
    const float width = to.max - to.min;
    if (width == 0) return;
    const float from_width = from.max - from.min;
    const auto steps = static_cast<float>(255.0 / width);
    const auto middle = static_cast<float>((from.min + from.max) / 2.0);
    scale_ = Saturated(255.0 * kOne * from_width / width);
    const int64_t lowest = Saturated(std::round(kOne * (to.min * 255.0) / width));
    const int64_t middle_steps = Saturated(middle * steps * kOne);
    offset_ = static_cast<int64_t>(static_cast<uint64_t>(middle_steps) - static_cast<uint64_t>(lowest));
  }
  uint8_t operator()(int32_t code) const {
    const auto rounded = static_cast<int64_t>(static_cast<float>(code));
    const auto product = static_cast<int64_t>(static_cast<uint64_t>(rounded) * static_cast<uint64_t>(scale_));
    const auto sum = static_cast<int64_t>(static_cast<uint64_t>(product >> 32) + static_cast<uint64_t>(offset_) +
                                          static_cast<uint64_t>(kOne / 2));
    return static_cast<uint8_t>(std::clamp<int64_t>(sum >> 16, 0, 255));
  }

 private:
  static constexpr int kOne = 1 << 16;

  int64_t scale_ = 0, offset_ = 0;
};

// Writes the codes of output 0, each the result of convert(code).
template <typename Code, typename Convert>
void ConvertAll(ComputeContext* context, Convert convert) {
  const auto* codes = context->input_bits<int32_t>(0);
  auto* narrow = context->output_bits<Code>(0);
  context->threads().ParallelFor(context->input_shape(0).num_elements(), 16 << 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) narrow[i] = convert(codes[i]);
  });
}

void Narrow(ComputeContext* context, Range from, Range to) {
  if (context->output_at(0).dtype == DType::kQUint8) {
    ConvertAll<uint8_t>(context, Narrowing(from, to));
    return;
  }
  const CodesToReals<int32_t> to_reals(from);
  const RealsToCodes<int8_t> to_codes(to);
  ConvertAll<int8_t>(context, [&](int32_t code) { return to_codes(to_reals(code)); });
}

absl::Status PrepareRequantizationRange(PrepareContext* context) {
  SetRangeOutputShapes(context, 0);
  return RequireRangeInputs(context, 1, 2);
}

absl::Status ComputeRequantizationRange(ComputeContext* context) {
  const auto* codes = context->input_bits<int32_t>(0);
  SetRangeOutput(context, UsedRange(codes, context->input_shape(0).num_elements(), RangeInput(*context, 1)), 0);
  return absl::OkStatus();
}

absl::Status PrepareRequantize(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  SetRangeOutputShapes(context);
  return RequireRangeInputs(context, 1, 4);
}

absl::Status ComputeRequantize(ComputeContext* context) {
  const Range from = RangeInput(*context, 1), to = RangeInput(*context, 3);
  if (!(to.min <= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("'requested_output_min' must be <= 0, but is ", to.min));
  }
  if (!(to.max >= to.min)) {
    return absl::InvalidArgumentError(absl::StrCat("'requested_output_max' must be >= 'requested_output_min', but is ",
                                                   to.max, ", where that is ", to.min));
  }
  Narrow(context, from, to);
  SetRangeOutput(context, to);
  return absl::OkStatus();
}

absl::Status PrepareShrink(PrepareContext* context) {
  context->SetOutputShape(0, context->input_shape(0));
  SetRangeOutputShapes(context);
  return RequireRangeInputs(context, 1, 2);
}

absl::Status ComputeShrink(ComputeContext* context) {
  const auto* codes = context->input_bits<int32_t>(0);
  const Range from = RangeInput(*context, 1);
  const Range to = UsedRange(codes, context->input_shape(0).num_elements(), from);
  Narrow(context, from, to);
  SetRangeOutput(context, to);
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(RequantizationRange) {
  return Kernel("the minimum, at most 0, and the maximum of the values of input")
      .Types<QInt32>("Tinput")
      .Prepare(PrepareRequantizationRange)
      .Compute(ComputeRequantizationRange);
}

DEFINE_KERNEL(Requantize) {
  return Kernel("input as codes of the requested range; quint8 in fixed-point arithmetic, qint8 in float")
      .Types<QInt32>("Tinput")
      .Types<QUint8, QInt8>("out_type")
      .Prepare(PrepareRequantize)
      .Compute(ComputeRequantize);
}

DEFINE_KERNEL(QuantizeDownAndShrinkRange) {
  return Kernel("Requantize to the range that RequantizationRange computes")
      .Types<QInt32>("Tinput")
      .Types<QUint8>("out_type")
      .Prepare(PrepareShrink)
      .Compute(ComputeShrink);
}

}  // namespace permafrost
