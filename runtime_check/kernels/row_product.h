// Products of one row with a packed matrix, and elementwise loops over rows of floats: the inner loops of recurrent
// cells, whose products have a row for each example of a batch.
//
// A register tile of one row (gemm.h) has two sums, each of which waits for its last addition. Here a row is multiplied
// with four panels at a time. The order of additions is that of Multiply, so the results are equal bit for bit.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_ROW_PRODUCT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_ROW_PRODUCT_H_

#include <cstdint>

#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// The loops of one instruction set.
struct RowLoops {
  // c[panels * panel_width] = a[depth] * full panels, which are `panel_step` floats apart; or +=.
  void (*multiply)(int64_t panels, int64_t depth, const float* a, const float* b, int64_t panel_step, float* c,
                   bool accumulate);
};

// Returns the loops for the same instruction set as BestInnerLoops(). Thread-safe.
const RowLoops& BestRowLoops();

// As MultiplyPart for all panels, on all threads. REQUIRES: `loops` is BestInnerLoops().
void ParallelMultiplyPart(const InnerLoops& loops, ThreadPool& threads, int64_t rows, const PackedShape& shape,
                          DepthRange range, const float* a, int64_t a_stride, const float* packed, float* c,
                          int64_t c_stride);

// A function of two floats, applied to rows. A NaN in either operand gives NaN.
enum class RowFunction : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum, kSquaredDifference };

// z[i] = f(x[i], y[i]). A scalar operand is one element for the whole row. z may be x or y.
void ApplyToRow(RowFunction function, const float* x, bool x_is_scalar, const float* y, bool y_is_scalar, float* z,
                int64_t count);

// z[i] = condition[i] ? x[i] : y[i]. z may be x or y.
void SelectInRow(const bool* condition, bool condition_is_scalar, const float* x, bool x_is_scalar, const float* y,
                 bool y_is_scalar, float* z, int64_t count);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_ROW_PRODUCT_H_
