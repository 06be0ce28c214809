// QuantizedAdd, QuantizedMul, QuantizedBiasAdd, and the QuantizedRelu family.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

constexpr int64_t kGrain = 16 << 10;  // Minimum number of elements per thread.

// --- QuantizedAdd and QuantizedMul -----------------------------------------------------------------------------------

struct BinaryState : public KernelState {
  Broadcast broadcast;
};

absl::Status PrepareBinary(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 4));
  const Shape inputs[] = {context->input_shape(0), context->input_shape(1)};
  PF_ASSIGN_OR_RETURN(const Shape output, BroadcastShapes(inputs[0], inputs[1]));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  SetRangeOutputShapes(context);
  auto state = std::make_unique<BinaryState>();
  state->broadcast = Broadcast(inputs, output);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes output[...] = combine(x[...], y[...]), where x and y are codes.
template <typename Combine>
void ForEachPair(ComputeContext* context, Combine combine) {
  const Broadcast& broadcast = context->state<BinaryState>().broadcast;
  const auto* x = context->input_bits<uint8_t>(0);
  const auto* y = context->input_bits<uint8_t>(1);
  auto* z = context->output_bits<int32_t>(0);
  const int64_t x_step = broadcast.IsScalarInRow(0) ? 0 : 1, y_step = broadcast.IsScalarInRow(1) ? 0 : 1;
  context->threads().ParallelFor(broadcast.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t output, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        z[output + i] = combine(x[offsets[0] + i * x_step], y[offsets[1] + i * y_step]);
      }
    });
  });
}

int32_t WrappingSum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// Converts both operands to 32-bit codes of a common range, symmetric around 0 and 2^14 times as large as the larger
// operand's: this leaves 17 bits for the sum. An operand of one element is converted in double, which may differ from
// WidenedCodes.
absl::Status ComputeAdd(ComputeContext* context) {
  const Range x = RangeInput(*context, 2), y = RangeInput(*context, 4);
  PF_RETURN_IF_ERROR(CheckRange(x, "x"));
  PF_RETURN_IF_ERROR(CheckRange(y, "y"));
  const float largest = std::max(std::abs(std::min(x.min, y.min)), std::abs(std::max(x.max, y.max))) * (1 << 14);
  const Range z = {-largest, largest};
  SetRangeOutput(context, z);
  const WidenedCodes widen_x(x, z), widen_y(y, z);
  for (int scalar = 0; scalar < 2; ++scalar) {
    if (context->input_shape(scalar).num_elements() != 1) continue;
    const auto code = *context->input_bits<uint8_t>(scalar);
    const int32_t added = NearestCode<int32_t>(RealOf(code, scalar == 0 ? x : y), z);
    ForEachPair(context,
                [&](uint8_t a, uint8_t b) { return WrappingSum(added, scalar == 0 ? widen_y(b) : widen_x(a)); });
    return absl::OkStatus();
  }
  ForEachPair(context, [&](uint8_t a, uint8_t b) { return WrappingSum(widen_x(a), widen_y(b)); });
  return absl::OkStatus();
}

absl::Status ComputeMul(ComputeContext* context) {
  const Range x = RangeInput(*context, 2), y = RangeInput(*context, 4);
  PF_RETURN_IF_ERROR(CheckRange(x, "x"));
  PF_RETURN_IF_ERROR(CheckRange(y, "y"));
  SetRangeOutput(context, ProductRange<uint8_t, uint8_t>(x, y));
  const uint32_t zero_x = ZeroPoint<uint8_t>(x), zero_y = ZeroPoint<uint8_t>(y);
  ForEachPair(context, [&](uint8_t a, uint8_t b) { return static_cast<int32_t>((a - zero_x) * (b - zero_y)); });
  return absl::OkStatus();
}

// --- QuantizedBiasAdd ------------------------------------------------------------------------------------------------

absl::Status PrepareBias(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 2, 4));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  const Shape& input = context->input_shape(0);
  if (input.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", input.ToString(), ", expected rank 2 or more"));
  }
  if (context->input_type(0) != context->input_type(1)) {
    return absl::UnimplementedError(absl::StrCat("adds a bias of ", DTypeName(context->input_type(1)), " to ",
                                                 DTypeName(context->input_type(0)), ", expected equal types"));
  }
  const int64_t channels = input.dim(input.rank() - 1);
  if (context->input_shape(1).dim(0) != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has ", channels, " channels, the bias ", context->input_shape(1).dim(0)));
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, input));
  SetRangeOutputShapes(context);
  return absl::OkStatus();
}

// Converts input and bias to 32-bit codes of a range that is symmetric around 0 and 2^17 times as large as the larger
// one. The code of 0, which is 0 or -1 by rounding, is added as in TensorFlow.
absl::Status ComputeBias(ComputeContext* context) {
  const Range input = RangeInput(*context, 2), bias = RangeInput(*context, 4);
  const float largest = std::max(std::max(input.max, -input.min), std::max(bias.max, -bias.min)) * (1 << 17);
  const Range sum = {-largest, largest};
  SetRangeOutput(context, sum);
  const int64_t count = context->input_shape(0).num_elements();
  if (count == 0) return absl::OkStatus();
  const int64_t channels = context->input_shape(1).dim(0);
  const RealsToCodes<int32_t> to_sum(sum);
  const int32_t zero = NearestCode<int32_t>(0.f, sum);
  auto* output = context->output_bits<int32_t>(0);
  DispatchOn<QUint8, QInt8>(context->input_at(0).dtype, [&](auto tag) {
    using Code = CodeOf<typename decltype(tag)::type>;
    const auto* x = context->input_bits<Code>(0);
    const auto* b = context->input_bits<Code>(1);
    const CodesToReals<Code> input_reals(input), bias_reals(bias);
    // There are only 256 codes, so a table holds all conversions.
    int32_t table[256];
    for (int code = 0; code < 256; ++code) table[code] = to_sum(input_reals(static_cast<Code>(code)));
    context->threads().ParallelFor(count / channels, 1 + kGrain / channels, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t c = 0; c < channels; ++c) {
          const int32_t added = WrappingSum(to_sum(bias_reals(b[c])), zero);
          output[row * channels + c] = WrappingSum(table[static_cast<uint8_t>(x[row * channels + c])], added);
        }
      }
    });
  });
  return absl::OkStatus();
}

// --- QuantizedRelu, QuantizedRelu6, QuantizedReluX -------------------------------------------------------------------

absl::Status PrepareRelu(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, 1, context->num_inputs() - 1));
  if (context->input_type(0) != context->output_type(0)) {
    return absl::UnimplementedError(absl::StrCat("turns ", DTypeName(context->input_type(0)), " into ",
                                                 DTypeName(context->output_type(0)), ", expected equal types"));
  }
  context->SetOutputShape(0, context->input_shape(0));
  SetRangeOutputShapes(context);
  return absl::OkStatus();
}

// Clamps codes between those of 0 and of `most`; the range does not change.
void Clamp(ComputeContext* context, Range range, float most) {
  SetRangeOutput(context, range);
  DispatchOn<QUint8, QInt32>(context->input_at(0).dtype, [&](auto tag) {
    using Code = CodeOf<typename decltype(tag)::type>;
    const auto* x = context->input_bits<Code>(0);
    auto* y = context->output_bits<Code>(0);
    const Code bottom = NearestCode<Code>(0.f, range);
    const Code top = std::isinf(most) ? static_cast<Code>(kHighest<Code>) : NearestCode<Code>(most, range);
    context->threads().ParallelFor(context->input_shape(0).num_elements(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = std::min(std::max(x[i], bottom), top);
    });
  });
}

absl::Status ComputeRelu(ComputeContext* context) {
  Clamp(context, RangeInput(*context, 1), std::numeric_limits<float>::infinity());
  return absl::OkStatus();
}
absl::Status ComputeRelu6(ComputeContext* context) {
  Clamp(context, RangeInput(*context, 1), 6.f);
  return absl::OkStatus();
}
absl::Status ComputeReluX(ComputeContext* context) {
  Clamp(context, RangeInput(*context, 2), *context->input<float>(1));
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedAdd) {
  return Kernel("z = x + y, as codes of a range 2^14 times the larger of the two")
      .Types<QUint8>("T1")
      .Types<QUint8>("T2")
      .Types<QInt32>("Toutput")
      .Prepare(PrepareBinary)
      .Compute(ComputeAdd);
}

DEFINE_KERNEL(QuantizedMul) {
  return Kernel("z = (x - zero point of x) * (y - zero point of y), on codes")
      .Types<QUint8>("T1")
      .Types<QUint8>("T2")
      .Types<QInt32>("Toutput")
      .Prepare(PrepareBinary)
      .Compute(ComputeMul);
}

DEFINE_KERNEL(QuantizedBiasAdd) {
  return Kernel("output[..., c] = input[..., c] + bias[c], as codes of a range 2^17 times the larger of the two")
      .Types<QUint8, QInt8>("T1")
      .Types<QUint8, QInt8>("T2")
      .Types<QInt32>("out_type")
      .Prepare(PrepareBias)
      .Compute(ComputeBias);
}

DEFINE_KERNEL(QuantizedRelu) {
  return Kernel("max(features, 0), on codes of the same range")
      .Types<QUint8, QInt32>("Tinput")
      .Types<QUint8, QInt32>("out_type")
      .InPlace(0)
      .Prepare(PrepareRelu)
      .Compute(ComputeRelu);
}

DEFINE_KERNEL(QuantizedRelu6) {
  return Kernel("min(max(features, 0), 6), on codes of the same range")
      .Types<QUint8, QInt32>("Tinput")
      .Types<QUint8, QInt32>("out_type")
      .InPlace(0)
      .Prepare(PrepareRelu)
      .Compute(ComputeRelu6);
}

DEFINE_KERNEL(QuantizedReluX) {
  return Kernel("min(max(features, 0), max_value), on codes of the same range")
      .Types<QUint8, QInt32>("Tinput")
      .Types<QUint8, QInt32>("out_type")
      .InPlace(0)
      .Prepare(PrepareRelu)
      .Compute(ComputeReluX);
}

}  // namespace permafrost
