// Ops that reorder or repeat elements: Transpose, ConjugateTranspose, Tile, BroadcastTo.
#include <complex>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/copy_list.h"
#include "runtime_check/kernels/moving_kernel.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

absl::Status PrepareTranspose(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, IntegerVectorInput(context, 1));
  const Shape& input = context->input_shape(0);
  const int rank = input.rank();
  if (static_cast<int>(permutation.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("'perm' has ", permutation.size(), " elements, expected the rank ", rank));
  }
  std::vector<int> order;
  std::vector<bool> seen(rank, false);
  Shape output;
  for (int64_t given : permutation) {
    PF_ASSIGN_OR_RETURN(int axis, ResolveAxis(given, rank));
    if (seen[axis]) return absl::InvalidArgumentError(absl::StrCat("'perm' has ", axis, " twice"));
    seen[axis] = true;
    order.push_back(axis);
    output.AddDim(input.dim(axis));
  }
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  copies->Add(0, 0, 0, 0, PermutedDims(input.dims(), order));
  context->SetState(std::move(copies));
  context->SetOutputShape(0, std::move(output));
  return absl::OkStatus();
}

absl::Status ComputeConjugateTranspose(ComputeContext* context) {
  PF_RETURN_IF_ERROR(ComputeCopies(context));
  DispatchOn<std::complex<float>, std::complex<double>>(context->output_type(0), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = context->output<T>(0);
    for (int64_t i = 0; i < context->output_shape(0).num_elements(); ++i) y[i] = std::conj(y[i]);
  });
  return absl::OkStatus();
}

absl::Status PrepareTile(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireRank(context, 1, 1));
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> multiples, IntegerVectorInput(context, 1));
  const Shape& input = context->input_shape(0);
  if (static_cast<int>(multiples.size()) != input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'multiples' has ", multiples.size(), " elements, expected the rank ", input.rank()));
  }
  Shape output;
  for (int d = 0; d < input.rank(); ++d) {
    int64_t size;
    if (multiples[d] < 0 || __builtin_mul_overflow(multiples[d], input.dim(d), &size)) {
      return absl::InvalidArgumentError(absl::StrCat("'multiples' is ", multiples[d], " at ", d));
    }
    output.AddDim(size);
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  if (output.num_elements() == 0) {
    context->SetState(std::move(copies));
    return absl::OkStatus();
  }
  // Each dimension becomes two: the copies, then the elements.
  const absl::InlinedVector<int64_t, 6> from = RowMajorStrides(input.dims());
  const absl::InlinedVector<int64_t, 6> to = RowMajorStrides(output.dims());
  absl::InlinedVector<StridedCopy::Dim, 12> dims;
  for (int d = 0; d < input.rank(); ++d) {
    dims.push_back({multiples[d], 0, input.dim(d) * to[d]});
    dims.push_back({input.dim(d), from[d], to[d]});
  }
  copies->Add(0, 0, 0, 0, dims);
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

absl::Status PrepareBroadcastTo(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, IntegerVectorInput(context, 1));
  const Shape& input = context->input_shape(0);
  const Shape output(wanted);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  PF_ASSIGN_OR_RETURN(Shape both, BroadcastShapes(input, output));
  if (both != output) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shape ", input.ToString(), " does not broadcast to ", output.ToString()));
  }
  const absl::InlinedVector<int64_t, 6> from = RowMajorStrides(input.dims());
  const absl::InlinedVector<int64_t, 6> to = RowMajorStrides(output.dims());
  absl::InlinedVector<StridedCopy::Dim, 6> dims;
  for (int d = 0; d < output.rank(); ++d) {
    const int own = d - (output.rank() - input.rank());
    dims.push_back({output.dim(d), own < 0 || input.dim(own) == 1 ? 0 : from[own], to[d]});
  }
  auto copies = std::make_unique<CopyList>(SizeOf(context->input_type(0)));
  copies->Add(0, 0, 0, 0, dims);
  context->SetState(std::move(copies));
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(Transpose) {
  return MovingKernel<PrepareTranspose>(
      "the input with permuted dimensions: dimension d of the output is dimension perm[d] of the input");
}
DEFINE_KERNEL(ConjugateTranspose) {
  return Kernel("as Transpose; complex numbers are conjugated")
      .TypeNumbers("T", MovableAndStringTypes())
      .Prepare(PrepareNumbered<PrepareTranspose>)
      .Compute(ComputeNumbered<ComputeConjugateTranspose>);
}
DEFINE_KERNEL(Tile) { return MovingKernel<PrepareTile>("the input repeated along each dimension"); }
DEFINE_KERNEL(BroadcastTo) { return MovingKernel<PrepareBroadcastTo>("the input broadcast to the given shape"); }

}  // namespace permafrost
