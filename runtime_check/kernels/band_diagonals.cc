// Bands of diagonals of matrices: MatrixDiagV2, MatrixDiagPart, MatrixSetDiagV2 and their later versions. Diag and
// DiagPart, which have one diagonal through tensors of any rank.
//
// Diagonal k starts at column k of the first row, or, if k is negative, in row -k of the first column. A band is stored
// as one row for each diagonal, the highest k first. Rows are as long as the longest diagonal; shorter diagonals are at
// their left or their right end.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/threads/cancellation.h"

namespace permafrost {
namespace {

struct BandState : KernelState {
  int64_t lower = 0, upper = 0;  // The numbers of the first and the last diagonal.
  int64_t matrices = 0, rows = 0, columns = 0;
  int64_t longest = 0;                        // Length of the stored rows.
  bool left_above = true, left_below = true;  // Diagonals above and below the main one are at the left end.

  int64_t diagonals() const { return upper - lower + 1; }
  int64_t LengthOf(int64_t k) const {
    return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(k, 0), columns - std::max<int64_t>(k, 0)));
  }
  // Returns where a diagonal starts in its stored row.
  int64_t StartOf(int64_t k) const {
    const bool left = (k >= 0 && left_above) || (k <= 0 && left_below);
    return left ? 0 : longest - LengthOf(k);
  }
};

// Reads the numbers of the diagonals from input i, which is absent in the first versions, and attr align.
absl::Status ReadBand(PrepareContext* context, int i, BandState* state) {
  if (i < context->num_inputs()) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> k, IntegerVectorInput(context, i));
    if (k.empty() || k.size() > 2 || k.front() > k.back()) {
      return absl::InvalidArgumentError("'k' is not one number or an ascending pair of numbers");
    }
    state->lower = k.front();
    state->upper = k.back();
  }
  if (context->node().FindAttr("align") == nullptr) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::string align, StringAttr(context->node(), "align"));
  if (align != "LEFT_LEFT" && align != "LEFT_RIGHT" && align != "RIGHT_LEFT" && align != "RIGHT_RIGHT") {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'align' is '", align, "', expected LEFT or RIGHT twice, joined by '_'"));
  }
  state->left_above = absl::StartsWith(align, "LEFT");
  state->left_below = absl::EndsWith(align, "LEFT");
  return absl::OkStatus();
}

// Reads the size of the matrices of input 0, and checks the band against it.
absl::Status ReadMatrices(PrepareContext* context, BandState* state) {
  const Shape& input = context->input_shape(0);
  if (input.rank() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected a rank of at least 2"));
  }
  state->rows = input.dim(input.rank() - 2);
  state->columns = input.dim(input.rank() - 1);
  state->matrices = ProductOfDims(input, 0, input.rank() - 2);
  for (const int64_t k : {state->lower, state->upper}) {
    if (k != 0 && (k <= -state->rows || k >= state->columns)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'k' has ", k, ", expected a diagonal of a matrix of shape ", input.ToString()));
    }
  }
  state->longest =
      std::min(state->rows + std::min<int64_t>(state->upper, 0), state->columns - std::max<int64_t>(state->lower, 0));
  return absl::OkStatus();
}

// Returns the shape of the stored band of matrices of that shape.
Shape ShapeOfBand(const BandState& state, const Shape& matrices) {
  Shape shape(matrices.dims().subspan(0, matrices.rank() - 2));
  if (state.diagonals() > 1) shape.AddDim(state.diagonals());
  shape.AddDim(state.longest);
  return shape;
}

absl::Status RequireScalar(PrepareContext* context, int i) {
  if (i >= context->num_inputs() || context->input_shape(i).CheckedNumElements().value_or(0) == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has the shape ", context->input_shape(i).ToString(), ", expected a scalar"));
}

// --- MatrixDiagV2 and V3 ---------------------------------------------------------------------------------------------

absl::Status PrepareMatrixDiag(PrepareContext* context) {
  auto state = std::make_unique<BandState>();
  PF_RETURN_IF_ERROR(ReadBand(context, 1, state.get()));
  PF_RETURN_IF_ERROR(RequireScalar(context, 4));
  PF_ASSIGN_OR_RETURN(int64_t rows, IntegerInput(context, 2));
  PF_ASSIGN_OR_RETURN(int64_t columns, IntegerInput(context, 3));
  const Shape& band = context->input_shape(0);
  const int row_dims = state->diagonals() > 1 ? 2 : 1;
  if (band.rank() < row_dims || (row_dims == 2 && band.dim(band.rank() - 2) != state->diagonals())) {
    return absl::InvalidArgumentError(absl::StrCat("the diagonals have the shape ", band.ToString(), ", expected ",
                                                   state->diagonals(), " diagonals"));
  }
  state->longest = band.dim(band.rank() - 1);
  if (state->longest > INT32_MAX) return absl::InvalidArgumentError("a diagonal has more than 2^31 - 1 elements");
  // The smallest matrix that holds the longest diagonal.
  const int64_t least_rows = state->longest - std::min<int64_t>(state->upper, 0);
  const int64_t least_columns = state->longest + std::max<int64_t>(state->lower, 0);
  if (rows == -1 && columns == -1) {
    rows = columns = std::max(least_rows, least_columns);
  } else if (rows == -1) {
    rows = least_rows;
  } else if (columns == -1) {
    columns = least_columns;
  }
  if (rows < least_rows || columns < least_columns || (rows != least_rows && columns != least_columns)) {
    return absl::InvalidArgumentError(absl::StrCat("the matrices have ", rows, " rows and ", columns,
                                                   " columns, expected ", least_rows, " rows or ", least_columns,
                                                   " columns, and not less of the other"));
  }
  state->rows = rows;
  state->columns = columns;
  state->matrices = ProductOfDims(band, 0, band.rank() - row_dims);
  Shape output(band.dims().subspan(0, band.rank() - row_dims));
  output.AddDim(rows);
  output.AddDim(columns);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeMatrixDiag(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const auto& state = context->state<BandState>();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* band = context->input_bytes(0);
  const char* padding = context->input_bytes(4);
  char* output = context->output_bytes(0);
  for (int64_t matrix = 0; matrix < state.matrices; ++matrix) {
    for (int64_t row = 0; row < state.rows && !RunIsCancelled(); ++row) {
      for (int64_t column = 0; column < state.columns; ++column, output += bytes) {
        const int64_t k = column - row;
        const char* from = padding;
        if (k >= state.lower && k <= state.upper) {
          const int64_t place = state.StartOf(k) + std::min(row, column);
          from = band + ((matrix * state.diagonals() + state.upper - k) * state.longest + place) * bytes;
        }
        std::memcpy(output, from, static_cast<size_t>(bytes));
      }
    }
  }
  return absl::OkStatus();
}

// --- MatrixDiagPart --------------------------------------------------------------------------------------------------

// Calls visit(first element of the matrices, of the band, length) for each diagonal of each matrix.
template <typename Visit>
void ForEachDiagonal(const BandState& state, Visit visit) {
  for (int64_t matrix = 0; matrix < state.matrices; ++matrix) {
    for (int64_t k = state.upper; k >= state.lower && !RunIsCancelled(); --k) {
      const int64_t row = std::max<int64_t>(0, -k), column = std::max<int64_t>(0, k);
      visit((matrix * state.rows + row) * state.columns + column,
            (matrix * state.diagonals() + state.upper - k) * state.longest, k);
    }
  }
}

absl::Status PrepareMatrixDiagPart(PrepareContext* context) {
  auto state = std::make_unique<BandState>();
  PF_RETURN_IF_ERROR(ReadBand(context, 1, state.get()));
  PF_RETURN_IF_ERROR(RequireScalar(context, 2));
  PF_RETURN_IF_ERROR(ReadMatrices(context, state.get()));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, ShapeOfBand(*state, context->input_shape(0))));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeMatrixDiagPart(ComputeContext* context) {
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  const auto& state = context->state<BandState>();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* input = context->input_bytes(0);
  const char* padding = context->num_inputs() > 2 ? context->input_bytes(2) : nullptr;
  char* output = context->output_bytes(0);
  ForEachDiagonal(state, [&](int64_t from, int64_t to, int64_t k) {
    const int64_t start = state.StartOf(k), end = start + state.LengthOf(k);
    for (int64_t i = 0; i < state.longest; ++i) {
      const bool inside = i >= start && i < end;  // Always without padding: the diagonal is the longest.
      if (!inside && padding == nullptr) continue;
      std::memcpy(output + (to + i) * bytes,
                  inside ? input + (from + (i - start) * (state.columns + 1)) * bytes : padding,
                  static_cast<size_t>(bytes));
    }
  });
  return absl::OkStatus();
}

// --- MatrixSetDiagV2 and V3 ------------------------------------------------------------------------------------------

absl::Status PrepareMatrixSetDiag(PrepareContext* context) {
  auto state = std::make_unique<BandState>();
  PF_RETURN_IF_ERROR(ReadBand(context, 2, state.get()));
  PF_RETURN_IF_ERROR(ReadMatrices(context, state.get()));
  const Shape expected = ShapeOfBand(*state, context->input_shape(0));
  if (context->input_shape(1) != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the diagonals have the shape ", context->input_shape(1).ToString(),
                                                   ", expected ", expected.ToString(), " for matrices of shape ",
                                                   context->input_shape(0).ToString()));
  }
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeMatrixSetDiag(ComputeContext* context) {
  const Shape& shape = context->output_shape(0);
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto& state = context->state<BandState>();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* band = context->input_bytes(1);
  char* output = context->output_bytes(0);
  // The output may be the input.
  std::memmove(output, context->input_bytes(0), static_cast<size_t>(shape.num_elements() * bytes));
  ForEachDiagonal(state, [&](int64_t to, int64_t from, int64_t k) {
    for (int64_t i = 0; i < state.LengthOf(k); ++i) {
      std::memcpy(output + (to + i * (state.columns + 1)) * bytes, band + (from + state.StartOf(k) + i) * bytes,
                  static_cast<size_t>(bytes));
    }
  });
  return absl::OkStatus();
}

// --- Diag, DiagPart --------------------------------------------------------------------------------------------------

absl::Status PrepareDiag(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  Shape output = input;
  for (const int64_t dim : input.dims()) output.AddDim(dim);
  return SetCheckedShape(context, 0, output);
}

absl::Status ComputeDiag(ComputeContext* context) {
  const int64_t count = context->input_shape(0).num_elements();
  if (count == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  std::memset(output, 0, static_cast<size_t>(count * count * bytes));
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(output + i * (count + 1) * bytes, input + i * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

absl::Status PrepareDiagPart(PrepareContext* context) {
  const Shape& input = context->input_shape(0);
  const int half = input.rank() / 2;
  const Shape first(input.dims().subspan(0, half));
  if (input.rank() % 2 != 0 || input.rank() == 0 || first != Shape(input.dims().subspan(half))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has the shape ", input.ToString(), ", expected the same dimensions twice"));
  }
  return SetCheckedShape(context, 0, first);
}

absl::Status ComputeDiagPart(ComputeContext* context) {
  const int64_t count = context->output_shape(0).num_elements();
  if (count == 0) return absl::OkStatus();
  const auto bytes = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const char* input = context->input_bytes(0);
  char* output = context->output_bytes(0);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(output + i * bytes, input + i * (count + 1) * bytes, static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

Kernel BandKernel(const char* formula, PrepareFunction prepare, ComputeFunction compute) {
  return Kernel(formula).TypeNumbers("T", MovableTypes()).Prepare(prepare).Compute(compute);
}

}  // namespace

DEFINE_KERNEL(MatrixDiagV2) {
  return BandKernel("matrices with the given diagonals k, left-aligned, and padding_value beside them",
                    PrepareMatrixDiag, ComputeMatrixDiag);
}
DEFINE_KERNEL(MatrixDiagV3) {
  return BandKernel("matrices with the given diagonals k, aligned as 'align' says, and padding_value beside them",
                    PrepareMatrixDiag, ComputeMatrixDiag);
}
DEFINE_KERNEL(MatrixDiagPart) {
  return BandKernel("the main diagonals of the matrices", PrepareMatrixDiagPart, ComputeMatrixDiagPart);
}
DEFINE_KERNEL(MatrixDiagPartV2) {
  return BandKernel("the diagonals k of the matrices, left-aligned and padded", PrepareMatrixDiagPart,
                    ComputeMatrixDiagPart);
}
DEFINE_KERNEL(MatrixDiagPartV3) {
  return BandKernel("the diagonals k of the matrices, aligned as 'align' says and padded", PrepareMatrixDiagPart,
                    ComputeMatrixDiagPart);
}
DEFINE_KERNEL(MatrixSetDiagV2) {
  return BandKernel("the matrices with the given diagonals k, left-aligned", PrepareMatrixSetDiag, ComputeMatrixSetDiag)
      .InPlace(0);
}
DEFINE_KERNEL(MatrixSetDiagV3) {
  return BandKernel("the matrices with the given diagonals k, aligned as 'align' says", PrepareMatrixSetDiag,
                    ComputeMatrixSetDiag)
      .InPlace(0);
}
DEFINE_KERNEL(Diag) {
  return BandKernel("zeros, with the elements at the positions whose second half repeats the first", PrepareDiag,
                    ComputeDiag);
}
DEFINE_KERNEL(DiagPart) {
  return BandKernel("the elements at the positions whose second half repeats the first", PrepareDiagPart,
                    ComputeDiagPart);
}

}  // namespace permafrost
