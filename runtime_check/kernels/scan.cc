// Running sums and products: Cumsum, Cumprod.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>

#include "graph/base/status.h"
#include "runtime_check/kernels/elementwise.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/wide_elements.h"

namespace permafrost {
namespace {

// The input as [outer, size, inner]: the scan runs along `size`.
struct ScanState : KernelState {
  int64_t outer, size, inner;
  bool exclusive, reverse;
};

absl::Status PrepareScan(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t given, IntegerInput(context, 1));
  const Shape& input = context->input_shape(0);
  auto state = std::make_unique<ScanState>();
  PF_ASSIGN_OR_RETURN(state->exclusive, BoolAttr(context->node(), "exclusive"));
  PF_ASSIGN_OR_RETURN(state->reverse, BoolAttr(context->node(), "reverse"));
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given, input.rank()));
  state->outer = ProductOfDims(input, 0, axis);
  state->size = input.dim(axis);
  state->inner = ProductOfDims(input, axis + 1, input.rank());
  context->SetState(std::move(state));
  return SameShape(context);
}

template <typename T, bool is_product>
void Scan(ComputeContext* context) {
  const auto& state = context->state<ScanState>();
  const T* input = context->input<T>(0);
  T* output = context->output<T>(0);
  const int64_t step = state.reverse ? -state.inner : state.inner;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, state.size));
  context->threads().ParallelFor(state.outer * state.inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t start = line / state.inner * state.size * state.inner + line % state.inner;
      const int64_t first = state.reverse ? start + (state.size - 1) * state.inner : start;
      Total<T> total = is_product ? 1 : 0;
      for (int64_t i = 0, at = first; i < state.size; ++i, at += step) {
        const Total<T> before = total;
        const auto element = static_cast<Total<T>>(Comparable(input[at]));
        total = is_product ? total * element : total + element;
        output[at] = Narrow<T>(state.exclusive ? before : total);
      }
    }
  });
}

template <bool is_product>
absl::Status ComputeScan(ComputeContext* context) {
  if (context->input_shape(0).num_elements() == 0) return absl::OkStatus();
  DispatchOn<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
             std::complex<float>, std::complex<double>>(
      context->input_at(0).dtype, [&](auto tag) { Scan<typename decltype(tag)::type, is_product>(context); });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Cumsum) {
  return Kernel("the cumulative sum along an axis")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareScan)
      .Compute(ComputeScan<false>);
}

DEFINE_KERNEL(Cumprod) {
  return Kernel("the cumulative product along an axis")
      .TypeNumbers("T", NumberAndComplexTypes())
      .InPlace(0)
      .Prepare(PrepareScan)
      .Compute(ComputeScan<true>);
}

}  // namespace permafrost
