// Attributes of integer nodes (_Integer... and _Hybrid...), and the division of their rows among threads.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_OPERATOR_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_OPERATOR_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/integer/integer_convolution.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {

// Returns the type of codes in tensors of a type. Returns Unimplemented if there is none.
absl::StatusOr<CodeType> CodeTypeOf(DType dtype);

// Returns InvalidArgument unless the node has from `least` to `most` inputs.
absl::Status RequireInputs(const PrepareContext& context, int least, int most);

// Return type, scale and zero point of input i and of output 0 from the node's attributes `input_scales`,
// `input_zero_points`, `output_scale` and `output_zero_point`. InvalidArgument if they are malformed.
absl::StatusOr<Affine> InputAffine(const PrepareContext& context, int i);
absl::StatusOr<Affine> OutputAffine(const PrepareContext& context);

// Read the attributes `activation` and `rounding`.
absl::StatusOr<FusedActivation> ReadActivation(const Node& node);
absl::StatusOr<Rounding> ReadRounding(const Node& node);

// Prepares a product of the matrices in inputs 0 and 1, whose batch dimensions broadcast: reads the sizes and the
// attributes `adj_x` and `adj_y`, sets the shape of output 0, and fills `products` with the numbers of the left and
// right matrices.
absl::StatusOr<IntegerMatrixProduct::Sizes> PrepareMatrixPairs(PrepareContext* context,
                                                               std::vector<std::pair<int64_t, int64_t>>* products);

// A division of rows into at most one piece for each thread, each with scratch memory of its own.
struct RowPieces {
  int64_t rows = 0;
  int64_t pieces = 1;
  int64_t scratch_size = 0;  // Of one piece; a multiple of 64.
  int64_t scratch_part = 0;

  // `row_cost` is the number of operations of a row. Adds the scratch memory to `parts`.
  static absl::StatusOr<RowPieces> Make(const PrepareContext& context, int64_t rows, int64_t row_cost,
                                        int64_t scratch_size, ScratchParts* parts) {
    constexpr int64_t kLeastCost = 16 << 10;  // About 5 microseconds, several times the cost of waking a thread.
    RowPieces result;
    result.rows = rows;
    result.scratch_size = AlignScratch(scratch_size);
    const int64_t rows_of_piece = std::max<int64_t>(1, kLeastCost / std::max<int64_t>(row_cost, 1));
    result.pieces = std::max<int64_t>(1, std::min<int64_t>(context.num_threads(), rows / rows_of_piece));
    PF_ASSIGN_OR_RETURN(result.scratch_part, parts->Add(result.pieces, result.scratch_size));
    return result;
  }

  // Calls compute(first, last, scratch) for all rows.
  template <typename Compute>
  void Run(ComputeContext* context, Compute compute) const {
    if (rows == 0) return;
    char* scratch = context->scratch() == nullptr ? nullptr : context->scratch() + scratch_part;
    if (pieces == 1) return compute(0, rows, scratch);
    context->threads().ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        compute(rows * piece / pieces, rows * (piece + 1) / pieces, scratch + piece * scratch_size);
      }
    });
  }
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_OPERATOR_H_
