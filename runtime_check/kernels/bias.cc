// BiasAdd: adds one value per channel.
#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/channel_rows.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// The tensor as [outer][channels][inner]. In NHWC order, inner is 1.
struct BiasState : public KernelState {
  int64_t outer = 1, channels = 1, inner = 1;
};

absl::Status PrepareBias(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  if (input.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has the shape ", input.ToString(), ", expected rank 2 or more"));
  }
  std::string format = "NHWC";
  if (context->node().op() == ops::kBiasAdd) {
    PF_ASSIGN_OR_RETURN(format, StringAttr(context->node(), "data_format"));
  }
  if (format != "NHWC" && format != "NCHW") {
    return absl::InvalidArgumentError(absl::StrCat("attr 'data_format' is '", format, "', expected 'NHWC' or 'NCHW'"));
  }
  const int channel = format == "NHWC" ? input.rank() - 1 : 1;
  auto state = std::make_unique<BiasState>();
  state->outer = ProductOfDims(input, 0, channel);
  state->channels = input.dim(channel);
  state->inner = ProductOfDims(input, channel + 1, input.rank());
  if (context->input_shape(1).dim(0) != state->channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 has ", state->channels, " channels, the bias ", context->input_shape(1).dim(0)));
  }
  context->SetOutputShape(0, input);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Computes y = x + bias for one plane.
template <typename T>
void AddPlane(int64_t count, const T* x, T bias, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    BestInnerLoops().add_scalar(count, x, bias, y);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] + bias;
  }
}

template <typename Element>
void AddBias(ComputeContext* context) {
  using T = Wrapping<Element>;
  const auto& state = context->state<BiasState>();
  const T* x = reinterpret_cast<const T*>(context->input<Element>(0));
  const T* bias = reinterpret_cast<const T*>(context->input<Element>(1));
  T* y = reinterpret_cast<T*>(context->output<Element>(0));
  const int64_t row = state.channels * state.inner;
  context->threads().ParallelFor(state.outer, 1 + (32 << 10) / row, [&](int64_t begin, int64_t end) {
    if (state.inner == 1) return AddToRows(end - begin, row, x + begin * row, bias, y + begin * row);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < state.channels; ++c) {
        const int64_t offset = i * row + c * state.inner;
        AddPlane(state.inner, x + offset, bias[c], y + offset);
      }
    }
  });
}

// Adds 16-bit floats as floats and rounds the result.
template <typename T>
void AddBiasOf16Bits(ComputeContext* context) {
  const auto& state = context->state<BiasState>();
  const T* x = context->input<T>(0);
  const T* bias = context->input<T>(1);
  T* y = context->output<T>(0);
  const int64_t count = state.outer * state.channels * state.inner;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = Narrow<T>(Widen(x[i]) + Widen(bias[i / state.inner % state.channels]));
  }
}

absl::Status ComputeBias(ComputeContext* context) {
  if (context->input_shape(0).num_elements() == 0) return absl::OkStatus();
  const DType dtype = context->input_at(0).dtype;
  if (dtype == DType::kHalf) {
    AddBiasOf16Bits<Half>(context);
  } else if (dtype == DType::kBFloat16) {
    AddBiasOf16Bits<BFloat16>(context);
  } else {
    DispatchOn<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
               std::complex<float>, std::complex<double>>(
        dtype, [&](auto tag) { AddBias<typename decltype(tag)::type>(context); });
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(BiasAdd) {
  return Kernel("output[..., c] = value[..., c] + bias[c]")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareBias)
      .Compute(ComputeBias);
}

DEFINE_KERNEL(BiasAddV1) {
  return Kernel("output[..., c] = value[..., c] + bias[c]")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareBias)
      .Compute(ComputeBias);
}

}  // namespace permafrost
