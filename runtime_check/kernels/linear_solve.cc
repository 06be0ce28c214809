// MatrixSolve: solves systems of linear equations by LU decomposition with pivoting.
#include <complex>
#include <cstdint>

#include "Eigen/Dense"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

absl::Status Prepare(PrepareContext* context) {
  const Shape &matrix = context->input_shape(0), &right = context->input_shape(1);
  const int rank = matrix.rank();
  bool fits = rank >= 2 && right.rank() == rank && matrix.dim(rank - 1) == matrix.dim(rank - 2) &&
              right.dim(rank - 2) == matrix.dim(rank - 1);
  for (int d = 0; fits && d < rank - 2; ++d) fits = matrix.dim(d) == right.dim(d);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("found the shapes ", matrix.ToString(), " and ", right.ToString(),
                                                   ", expected [...,n,n] and [...,n,k]"));
  }
  // Scratch memory for the decomposition, a copy of one matrix.
  const int64_t n = matrix.dim(rank - 1);
  if (matrix.num_elements() > 0) context->RequestScratch(static_cast<size_t>(n * n) * SizeOf(context->input_type(0)));
  context->SetOutputShape(0, right);
  return absl::OkStatus();
}

template <typename T>
absl::Status Solve(ComputeContext* context, bool adjoint) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Shape& shape = context->input_shape(1);
  const int64_t n = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  if (shape.num_elements() == 0) return absl::OkStatus();
  Eigen::Map<Matrix> decomposed(reinterpret_cast<T*>(context->scratch()), n, n);
  for (int64_t i = 0; i < shape.num_elements() / (n * columns) && !RunIsCancelled(); ++i) {
    const Eigen::Map<const Matrix> matrix(context->input<T>(0) + i * n * n, n, n);
    const Eigen::Map<const Matrix> right(context->input<T>(1) + i * n * columns, n, columns);
    Eigen::Map<Matrix> output(context->output<T>(0) + i * n * columns, n, columns);
    if (adjoint) {
      decomposed = matrix.adjoint();
    } else {
      decomposed = matrix;
    }
    const Eigen::PartialPivLU<Eigen::Ref<Matrix>> solver(decomposed);
    if (!(decomposed.diagonal().cwiseAbs().minCoeff() > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("matrix ", i, " has no inverse"));
    }
    output = solver.solve(right);
  }
  return absl::OkStatus();
}

absl::Status Compute(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool adjoint, BoolAttr(context->node(), "adjoint"));
  absl::Status status;
  DispatchOn<float, double, std::complex<float>, std::complex<double>>(
      context->input_at(0).dtype, [&](auto tag) { status = Solve<typename decltype(tag)::type>(context, adjoint); });
  return status;
}

}  // namespace

DEFINE_KERNEL(MatrixSolve) {
  return Kernel("the solution x of matrix * x = rhs")
      .Types<float, double, std::complex<float>, std::complex<double>>("T")
      .Prepare(Prepare)
      .Compute(Compute);
}

}  // namespace permafrost
