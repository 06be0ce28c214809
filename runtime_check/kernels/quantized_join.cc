// QuantizedConcat: converts inputs to a common range and concatenates them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/quantized_ranges.h"

namespace permafrost {
namespace {

// The output as [outer][whole]; input i fills the `own[i]` elements starting at offsets[i] in each row.
struct JoinState : public KernelState {
  int count = 0;  // Inputs are the axis, `count` codes, `count` minima, and `count` maxima.
  int64_t outer = 0, whole = 0;
  std::vector<int64_t> own, offsets;
};

absl::Status PrepareJoin(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t given_axis, IntegerInput(context, 0));
  const int count = (context->num_inputs() - 1) / 3;
  if (count < 1 || context->num_inputs() != 3 * count + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(context->num_inputs(), " inputs, expected an axis and three lists of equal length"));
  }
  auto state = std::make_unique<JoinState>();
  state->count = count;
  PF_RETURN_IF_ERROR(RequireRangeInputs(context, count + 1, 2 * count));
  const Shape& model = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given_axis, model.rank()));
  PF_ASSIGN_OR_RETURN(const Shape output, ShapeOfJoined(context, 1, count, axis));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  SetRangeOutputShapes(context);
  if (output.num_elements() > 0) {
    state->outer = ProductOfDims(output, 0, axis);
    const int64_t inner = ProductOfDims(output, axis + 1, output.rank());
    state->whole = output.dim(axis) * inner;
    int64_t offset = 0;
    for (int i = 1; i <= count; ++i) {
      state->offsets.push_back(offset);
      state->own.push_back(context->input_shape(i).dim(axis) * inner);
      offset += state->own.back();
    }
  }
  context->SetState(std::move(state));
  return absl::OkStatus();
}

Range RangeOf(const ComputeContext& context, const JoinState& state, int i) {
  return {*context.input<float>(1 + state.count + i), *context.input<float>(1 + 2 * state.count + i)};
}

absl::Status ComputeJoin(ComputeContext* context) {
  const auto& state = context->state<JoinState>();
  // The range always extends down to 0, but not up to it.
  Range all = RangeOf(*context, state, 0);
  all.min = std::min(all.min, 0.f);
  for (int i = 1; i < state.count; ++i) {
    const Range own = RangeOf(*context, state, i);
    all.min = std::min(all.min, own.min);
    all.max = std::max(all.max, own.max);
  }
  DispatchOn<QUint8, QInt32>(context->output_at(0).dtype, [&](auto tag) {
    using Code = CodeOf<typename decltype(tag)::type>;
    if (std::is_signed_v<Code>) {  // Symmetric, so that 0 is in the middle of the codes.
      all.max = std::max(std::abs(all.min), std::abs(all.max));
      all.min = -all.max;
    }
    SetRangeOutput(context, all);
    if (state.outer == 0) return;
    auto* output = context->output_bits<Code>(0);
    const RealsToCodes<Code> to_codes(all);
    for (int i = 0; i < state.count; ++i) {
      const Range own = RangeOf(*context, state, i);
      const auto* input = context->input_bits<Code>(1 + i);
      const CodesToReals<Code> to_reals(own);
      const bool is_same = own.min == all.min && own.max == all.max;
      const int64_t size = state.own[i];
      if (size == 0) continue;
      context->threads().ParallelFor(state.outer, 1 + (16 << 10) / size, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const Code* from = input + row * size;
          Code* to = output + row * state.whole + state.offsets[i];
          if (is_same) {
            std::memcpy(to, from, size * sizeof(Code));
          } else {
            for (int64_t j = 0; j < size; ++j) to[j] = to_codes(to_reals(from[j]));
          }
        }
      });
    }
  });
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(QuantizedConcat) {
  return Kernel("the inputs concatenated along an axis, requantised to a range that contains the ranges of all inputs")
      .Types<QUint8, QInt32>("T")
      .Prepare(PrepareJoin)
      .Compute(ComputeJoin);
}

}  // namespace permafrost
