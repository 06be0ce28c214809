// Roll, MatrixBandPart and BroadcastArgs: cyclic shifts, bands of matrices, and broadcast shapes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;

// --- Roll ------------------------------------------------------------------------------------------------------------

struct RollState : KernelState {
  std::vector<int64_t> dims, shifts;  // Shifts in [0, dim).
};

absl::Status PrepareRoll(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> shifts, IntegerVectorInput(context, 1));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntegerVectorInput(context, 2));
  if (input.rank() < 1) return absl::InvalidArgumentError("the input is a scalar, expected a rank of at least 1");
  if (shifts.size() != axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'shift' has ", shifts.size(), " elements and 'axis' ", axes.size(), ", expected equally many"));
  }
  auto state = std::make_unique<RollState>();
  state->dims.assign(input.dims().begin(), input.dims().end());
  state->shifts.assign(state->dims.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    PF_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes[i], input.rank()));
    const int64_t size = std::max<int64_t>(1, input.dim(axis));
    int64_t& shift = state->shifts[axis];
    const int64_t step = (shifts[i] % size + size) % size;
    shift = shift < size - step ? shift + step : shift - (size - step);
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeRoll(ComputeContext* context) {
  const auto& state = context->state<RollState>();
  const int64_t count = context->output_shape(0).num_elements();
  if (count == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->output_at(0).dtype));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const int outer = static_cast<int>(state.dims.size()) - 1;
  const int64_t row_bytes = state.dims[outer] * bytes, shift_bytes = state.shifts[outer] * bytes;
  context->threads().ParallelFor(count / state.dims[outer], std::max<int64_t>(1, kGrainBytes / row_bytes),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t row = begin; row < end; ++row) {
                                     int64_t rest = row, target = 0, stride = 1;
                                     for (int d = outer - 1; d >= 0; --d) {
                                       const int64_t index = rest % state.dims[d] + state.shifts[d];
                                       target += (index < state.dims[d] ? index : index - state.dims[d]) * stride;
                                       rest /= state.dims[d];
                                       stride *= state.dims[d];
                                     }
                                     const char* from = input + row * row_bytes;
                                     char* to = output + target * row_bytes;
                                     std::memcpy(to + shift_bytes, from, row_bytes - shift_bytes);
                                     std::memcpy(to, from + row_bytes - shift_bytes, shift_bytes);
                                   }
                                 });
  return absl::OkStatus();
}

// --- MatrixBandPart --------------------------------------------------------------------------------------------------

struct BandState : KernelState {
  int64_t lower = 0, upper = 0;
};

absl::Status PrepareBand(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  if (input.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected a rank of at least 2"));
  }
  auto state = std::make_unique<BandState>();
  PF_ASSIGN_OR_RETURN(state->lower, IntegerInput(context, 1));
  PF_ASSIGN_OR_RETURN(state->upper, IntegerInput(context, 2));
  const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
  if (state->lower > rows || state->upper > columns) {
    return absl::InvalidArgumentError(absl::StrCat("num_lower is ", state->lower, " and num_upper ", state->upper,
                                                   ", expected at most ", rows, " and ", columns));
  }
  if (state->lower < 0) state->lower = rows;
  if (state->upper < 0) state->upper = columns;
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeBand(ComputeContext* context) {
  const auto& state = context->state<BandState>();
  const Shape& shape = context->output_shape(0);
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->output_at(0).dtype));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (columns * bytes));
  context->threads().ParallelFor(shape.num_elements() / columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % rows;
      const int64_t first = std::min(columns, std::max<int64_t>(0, row - state.lower));
      const int64_t last = row < columns - state.upper ? row + state.upper + 1 : columns;
      char* to = output + i * columns * bytes;
      std::memset(to, 0, first * bytes);
      // The output may be the input.
      std::memmove(to + first * bytes, input + (i * columns + first) * bytes, (std::max(first, last) - first) * bytes);
      std::memset(to + std::max(first, last) * bytes, 0, (columns - std::max(first, last)) * bytes);
    }
  });
  return absl::OkStatus();
}

// --- BroadcastArgs ---------------------------------------------------------------------------------------------------

absl::Status PrepareBroadcastArgs(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  context->SetOutputShape(0, Shape({std::max(context->input_shape(0).dim(0), context->input_shape(1).dim(0))}));
  return absl::OkStatus();
}

absl::Status ComputeBroadcastArgs(ComputeContext* context) {
  absl::Status status;
  DispatchOn<int32_t, int64_t>(context->output_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t ranks[] = {context->input_shape(0).dim(0), context->input_shape(1).dim(0)};
    const int64_t rank = context->output_shape(0).dim(0);
    for (int64_t d = 0; d < rank; ++d) {
      T sizes[2];
      for (int i : {0, 1}) {
        const int64_t own = d - (rank - ranks[i]);
        sizes[i] = own < 0 ? 1 : context->input<T>(i)[own];
      }
      if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1) {
        status = absl::InvalidArgumentError(absl::StrCat("the shapes have ", sizes[0], " and ", sizes[1],
                                                         " in dimension ", d, " of ", rank, ", expected equal or 1"));
        return;
      }
      context->output<T>(0)[d] = sizes[0] == 1 ? sizes[1] : sizes[0];
    }
  });
  return status;
}

}  // namespace

DEFINE_KERNEL(Roll) {
  return Kernel("the input shifted cyclically along the axes")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareRoll>)
      .Compute(ComputeNumbered<ComputeRoll>);
}

DEFINE_KERNEL(MatrixBandPart) {
  return Kernel("the matrices with zeros outside a band around the diagonal")
      .TypeNumbers("T", MovableTypes())
      .TypeNumbers("Tindex", IndexTypes())
      .InPlace(0)
      .Prepare(PrepareBand)
      .Compute(ComputeBand);
}

DEFINE_KERNEL(BroadcastArgs) {
  return Kernel("the shape that results from broadcasting two shapes")
      .TypeNumbers("T", IndexTypes())
      .Prepare(PrepareBroadcastArgs)
      .Compute(ComputeBroadcastArgs);
}

}  // namespace permafrost
