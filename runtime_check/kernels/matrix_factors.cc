// Cholesky, MatrixInverse, MatrixDeterminant and MatrixTriangularSolve: square matrices factored and inverted.
#include <complex>
#include <cstdint>
#include <utility>

#include "Eigen/Dense"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Returns the size of the matrices of input 0; InvalidArgument if they are not square.
absl::StatusOr<int64_t> SizeOfMatrices(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  const int rank = input.rank();
  if (rank < 2 || input.dim(rank - 1) != input.dim(rank - 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected square matrices"));
  }
  return input.dim(rank - 1);
}

// Calls compute(number, matrix) for each matrix of input 0, whose shape has elements, until it returns an error.
template <typename T, typename F>
absl::Status ForEachMatrix(ComputeContext* context, F compute) {
  const Shape& shape = context->input_shape(0);
  const int64_t n = shape.dim(shape.rank() - 1);
  if (shape.num_elements() == 0) return absl::OkStatus();
  for (int64_t i = 0; i < shape.num_elements() / (n * n) && !RunIsCancelled(); ++i) {
    PF_RETURN_IF_ERROR(compute(i, Eigen::Map<const Matrix<T>>(context->input<T>(0) + i * n * n, n, n)));
  }
  return absl::OkStatus();
}

template <typename F>
absl::Status Dispatch(ComputeContext* context, F compute) {
  absl::Status status;
  DispatchOn<float, double, std::complex<float>, std::complex<double>>(context->input_type(0),
                                                                       [&](auto tag) { status = compute(tag); });
  return status;
}

// --- Cholesky, MatrixInverse -----------------------------------------------------------------------------------------

absl::Status PrepareSquare(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t n, SizeOfMatrices(context));
  // One matrix, for the factors. If the input has elements, so many bytes are in memory already.
  if (context->input_shape(0).num_elements() > 0) {
    context->RequestScratch(static_cast<size_t>(n * n) * SizeOf(context->input_type(0)));
  }
  return SameShape(context);
}

// Reads the lower triangle. The upper one of the result is 0.
absl::Status ComputeCholesky(ComputeContext* context) {
  return Dispatch(context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ForEachMatrix<T>(context, [&](int64_t i, const auto& matrix) -> absl::Status {
      const int64_t n = matrix.rows();
      Eigen::Map<Matrix<T>> factor(reinterpret_cast<T*>(context->scratch()), n, n);
      factor = matrix;
      const Eigen::LLT<Eigen::Ref<Matrix<T>>> solver(factor);
      if (solver.info() != Eigen::Success) {
        return absl::InvalidArgumentError(absl::StrCat("matrix ", i, " is not positive definite"));
      }
      Eigen::Map<Matrix<T>> output(context->output<T>(0) + i * n * n, n, n);
      output.setZero();
      output.template triangularView<Eigen::Lower>() = factor;
      return absl::OkStatus();
    });
  });
}

absl::Status ComputeInverse(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool adjoint, BoolAttr(context->node(), "adjoint"));
  return Dispatch(context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ForEachMatrix<T>(context, [&](int64_t i, const auto& matrix) -> absl::Status {
      const int64_t n = matrix.rows();
      Eigen::Map<Matrix<T>> factors(reinterpret_cast<T*>(context->scratch()), n, n);
      if (adjoint) {
        factors = matrix.adjoint();
      } else {
        factors = matrix;
      }
      const Eigen::PartialPivLU<Eigen::Ref<Matrix<T>>> solver(factors);
      if (!(factors.diagonal().cwiseAbs().minCoeff() > 0)) {
        return absl::InvalidArgumentError(absl::StrCat("matrix ", i, " has no inverse"));
      }
      Eigen::Map<Matrix<T>>(context->output<T>(0) + i * n * n, n, n) = solver.inverse();
      return absl::OkStatus();
    });
  });
}

// --- MatrixDeterminant -----------------------------------------------------------------------------------------------

absl::Status PrepareDeterminant(PrepareContext* context) {
  PF_RETURN_IF_ERROR(PrepareSquare(context));
  const Shape& input = context->input_shape(0);
  return SetCheckedShape(context, 0, Shape(input.dims().subspan(0, input.rank() - 2)));
}

absl::Status ComputeDeterminant(ComputeContext* context) {
  return Dispatch(context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* output = context->output<T>(0);
    // The determinant of a matrix without elements is 1.
    for (int64_t i = 0; i < context->output_shape(0).num_elements(); ++i) output[i] = T(1);
    return ForEachMatrix<T>(context, [&](int64_t i, const auto& matrix) {
      Eigen::Map<Matrix<T>> factors(reinterpret_cast<T*>(context->scratch()), matrix.rows(), matrix.rows());
      factors = matrix;
      output[i] = Eigen::PartialPivLU<Eigen::Ref<Matrix<T>>>(factors).determinant();
      return absl::OkStatus();
    });
  });
}

// --- MatrixTriangularSolve -------------------------------------------------------------------------------------------

// The matrices of both inputs are paired by number; their batches are equal.
absl::Status PrepareTriangularSolve(PrepareContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t n, SizeOfMatrices(context));
  const Shape &matrix = context->input_shape(0), &right = context->input_shape(1);
  bool fits = right.rank() == matrix.rank() && right.dim(right.rank() - 2) == n;
  for (int d = 0; fits && d < matrix.rank() - 2; ++d) fits = matrix.dim(d) == right.dim(d);
  if (!fits) {
    return absl::UnimplementedError(absl::StrCat("found the shapes ", matrix.ToString(), " and ", right.ToString(),
                                                 ", expected [...,n,n] and [...,n,k] with equal batches"));
  }
  context->SetOutputShape(0, right);
  return absl::OkStatus();
}

absl::Status ComputeTriangularSolve(ComputeContext* context) {
  PF_ASSIGN_OR_RETURN(const bool lower, BoolAttr(context->node(), "lower"));
  PF_ASSIGN_OR_RETURN(const bool adjoint, BoolAttr(context->node(), "adjoint"));
  const Shape& shape = context->output_shape(0);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t n = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  return Dispatch(context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ForEachMatrix<T>(context, [&](int64_t i, const auto& matrix) -> absl::Status {
      if (!(matrix.diagonal().cwiseAbs().minCoeff() > 0)) {
        return absl::InvalidArgumentError(absl::StrCat("matrix ", i, " has no inverse"));
      }
      Eigen::Map<Matrix<T>> output(context->output<T>(0) + i * n * columns, n, columns);
      output = Eigen::Map<const Matrix<T>>(context->input<T>(1) + i * n * columns, n, columns);
      if (lower && adjoint) {
        matrix.template triangularView<Eigen::Lower>().adjoint().solveInPlace(output);
      } else if (lower) {
        matrix.template triangularView<Eigen::Lower>().solveInPlace(output);
      } else if (adjoint) {
        matrix.template triangularView<Eigen::Upper>().adjoint().solveInPlace(output);
      } else {
        matrix.template triangularView<Eigen::Upper>().solveInPlace(output);
      }
      return absl::OkStatus();
    });
  });
}

Kernel MatrixKernel(const char* formula, PrepareFunction prepare, ComputeFunction compute) {
  return Kernel(formula).Types<float, double, std::complex<float>, std::complex<double>>("T").Prepare(prepare).Compute(
      compute);
}

}  // namespace

DEFINE_KERNEL(Cholesky) {
  return MatrixKernel("the lower triangular matrix L of matrix = L * adjoint of L", PrepareSquare, ComputeCholesky);
}
DEFINE_KERNEL(MatrixInverse) { return MatrixKernel("the inverses of the matrices", PrepareSquare, ComputeInverse); }
DEFINE_KERNEL(MatrixDeterminant) {
  return MatrixKernel("the determinants of the matrices", PrepareDeterminant, ComputeDeterminant);
}
DEFINE_KERNEL(MatrixTriangularSolve) {
  return MatrixKernel("the solution x of matrix * x = rhs, for a triangular matrix", PrepareTriangularSolve,
                      ComputeTriangularSolve);
}

}  // namespace permafrost
