// Ops that select elements by index: Gather, GatherV2, GatherNd, InvertPermutation.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/slice_index.h"
#include "runtime_check/kernels/stand_in.h"

namespace permafrost {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;

// Copies one slice; slices of the size of a single element use one instruction.
inline void CopySlice(const char* from, char* to, int64_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    default:
      std::memcpy(to, from, bytes);
  }
}

// The shapes: params is [batch, outer, size, inner], indices are [batch, count], the output is [batch, outer, count,
// inner].
struct GatherState : KernelState {
  int64_t batch, outer, size, count;
  int64_t inner_bytes;
};

absl::Status PrepareGatherWith(PrepareContext* context, int64_t given_axis, int64_t given_batch_dims) {
  const Shape& params = context->input_shape(0);
  const Shape& indices = context->input_shape(1);
  if (params.rank() < 1) return absl::InvalidArgumentError("'params' is a scalar, expected a rank of at least 1");
  PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given_axis, params.rank()));
  const int64_t batch_dims = given_batch_dims < 0 ? given_batch_dims + indices.rank() : given_batch_dims;
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims > axis) {
    return absl::InvalidArgumentError(absl::StrCat("batch_dims is ", given_batch_dims, ", with the axis ", axis,
                                                   " and indices of shape ", indices.ToString()));
  }
  const int shared = static_cast<int>(batch_dims);
  Shape output;
  for (int d = 0; d < axis; ++d) {
    if (d < shared && params.dim(d) != indices.dim(d)) {
      return absl::InvalidArgumentError(absl::StrCat("'params' has the shape ", params.ToString(), " and 'indices' ",
                                                     indices.ToString(), ", which differ in the batch dimension ", d));
    }
    output.AddDim(params.dim(d));
  }
  for (int d = shared; d < indices.rank(); ++d) output.AddDim(indices.dim(d));
  for (int d = axis + 1; d < params.rank(); ++d) output.AddDim(params.dim(d));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, std::move(output)));
  auto state = std::make_unique<GatherState>();
  state->batch = ProductOfDims(params, 0, shared);
  state->outer = ProductOfDims(params, shared, axis);
  state->size = params.dim(axis);
  state->count = ProductOfDims(indices, shared, indices.rank());
  state->inner_bytes = ProductOfDims(params, axis + 1, params.rank()) * SizeOf(context->input_type(0));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status PrepareGather(PrepareContext* context) { return PrepareGatherWith(context, 0, 0); }

absl::Status PrepareGatherV2(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(int64_t axis, IntegerInput(context, 2));
  PF_ASSIGN_OR_RETURN(int64_t batch_dims, IntAttr(context->node(), "batch_dims"));
  return PrepareGatherWith(context, axis, batch_dims);
}

// Returns an error for the first index that is not in [0, size).
template <typename Index>
absl::Status CheckIndices(const Index* indices, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("indices has ", indices[i], " at element ", i, ", expected a value in [0, ", size, ")"));
    }
  }
  return absl::OkStatus();
}

template <typename Index>
absl::Status GatherSlices(ComputeContext* context) {
  const auto& state = context->state<GatherState>();
  const Index* indices = context->input<Index>(1);
  PF_RETURN_IF_ERROR(CheckIndices(indices, context->input_shape(1).num_elements(), state.size));
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const char* params = context->input_bytes(0);
  char* output = context->output_bytes(0);
  const int64_t bytes = state.inner_bytes;
  context->threads().ParallelFor(state.batch * state.outer * state.count, std::max<int64_t>(1, kGrainBytes / bytes),
                                 [&](int64_t begin, int64_t end) {
                                   while (begin < end) {
                                     const int64_t row = begin / state.count;
                                     const int64_t first = begin % state.count;
                                     const int64_t n = std::min(state.count - first, end - begin);
                                     const Index* own = indices + row / state.outer * state.count + first;
                                     const char* source = params + row * state.size * bytes;
                                     char* target = output + begin * bytes;
                                     for (int64_t i = 0; i < n; ++i)
                                       CopySlice(source + own[i] * bytes, target + i * bytes, bytes);
                                     begin += n;
                                   }
                                 });
  return absl::OkStatus();
}

absl::Status ComputeGather(ComputeContext* context) {
  absl::Status status;
  DispatchOn<int16_t, int32_t, int64_t>(
      context->input_at(1).dtype, [&](auto tag) { status = GatherSlices<typename decltype(tag)::type>(context); });
  return status;
}

// --- GatherNd --------------------------------------------------------------------------------------------------------

absl::Status PrepareGatherNd(PrepareContext* context) {
  const Shape& params = context->input_shape(0);
  const Shape& indices = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(std::unique_ptr<SliceIndex> state, ReadSliceIndex(context->node(), indices, params));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, ShapeOfSlices(*state, indices, params)));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <typename Index>
absl::Status GatherRows(ComputeContext* context) {
  const auto& state = context->state<SliceIndex>();
  const int64_t depth = static_cast<int64_t>(state.dims.size());
  const int64_t bytes = state.slice_elements * static_cast<int64_t>(SizeOf(context->input_at(0).dtype));
  const Index* indices = context->input<Index>(1);
  const char* params = context->input_bytes(0);
  char* output = context->output_bytes(0);
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  std::atomic<int64_t> bad_row{-1};
  context->threads().ParallelFor(state.num_rows, std::max<int64_t>(1, kGrainBytes / bytes),
                                 [&](int64_t begin, int64_t end) {
                                   for (int64_t row = begin; row < end; ++row) {
                                     const int64_t slice = state.SliceOf(indices + row * depth);
                                     if (slice < 0 && state.skips_bad_rows) {
                                       std::memset(output + row * bytes, 0, bytes);
                                       continue;
                                     }
                                     if (slice < 0) {
                                       bad_row = row;
                                       return;
                                     }
                                     CopySlice(params + slice * bytes, output + row * bytes, bytes);
                                   }
                                 });
  return bad_row < 0 ? absl::OkStatus() : BadRow(bad_row);
}

absl::Status ComputeGatherNd(ComputeContext* context) {
  absl::Status status;
  DispatchOn<int16_t, int32_t, int64_t>(context->input_at(1).dtype,
                                        [&](auto tag) { status = GatherRows<typename decltype(tag)::type>(context); });
  return status;
}

// --- InvertPermutation -----------------------------------------------------------------------------------------------

absl::Status PrepareInvertPermutation(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 0, 1));
  return SameShape(context);
}

absl::Status ComputeInvertPermutation(ComputeContext* context) {
  absl::Status status;
  DispatchOn<int32_t, int64_t>(context->input_at(0).dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = context->input<T>(0);
    T* y = context->output<T>(0);
    const int64_t count = context->input_shape(0).num_elements();
    status = CheckIndices(x, count, count);
    if (!status.ok()) return;
    std::fill_n(y, count, T(-1));
    for (int64_t i = 0; i < count; ++i) {
      if (y[x[i]] != -1) {
        status = absl::InvalidArgumentError(absl::StrCat("the permutation has ", x[i], " twice"));
        return;
      }
      y[x[i]] = static_cast<T>(i);
    }
  });
  return status;
}

}  // namespace

DEFINE_KERNEL(Gather) {
  return Kernel("the slices of params at the indices")
      .TypeNumbers("Tparams", MovableAndStringTypes())
      .TypeNumbers("Tindices", IndexTypes())
      .Prepare(PrepareNumbered<PrepareGather>)
      .Compute(ComputeNumbered<ComputeGather>);
}

DEFINE_KERNEL(GatherV2) {
  return Kernel("the slices of params at the indices along an axis")
      .TypeNumbers("Tparams", MovableAndStringTypes())
      .Types<int16_t, int32_t, int64_t>("Tindices")
      .Prepare(PrepareNumbered<PrepareGatherV2>)
      .Compute(ComputeNumbered<ComputeGather>);
}

DEFINE_KERNEL(GatherNd) {
  return Kernel("the slices of params addressed by the rows of indices")
      .TypeNumbers("Tparams", MovableAndStringTypes())
      .Types<int16_t, int32_t, int64_t>("Tindices")
      .Prepare(PrepareNumbered<PrepareGatherNd>)
      .Compute(ComputeNumbered<ComputeGatherNd>);
}

DEFINE_KERNEL(InvertPermutation) {
  return Kernel("y[x[i]] = i")
      .TypeNumbers("T", IndexTypes())
      .Prepare(PrepareInvertPermutation)
      .Compute(ComputeInvertPermutation);
}

}  // namespace permafrost
