// Products of matrices of 8-bit codes minus their zero points, with 32-bit sums that wrap around:
//
//   c[i][j] = sum over k of (a[i][k] - zero_a) * (b[k][j] - zero_b)
//
// The right matrix is packed once, column by column; rows of the left one are gathered block by block. Both are widened
// to 16 bits, since one instruction adds pairs of 16-bit products to 32-bit sums. Codes are multiplied without their
// zero points, b less 128, which keeps sums far from overflow. The sums of rows and columns give the contribution of
// the zero points:
//
//   c[i][j] = sum a * (b - 128)  +  (128 - zero_b) * sum of row i  -  zero_a * (sum of column j - depth * zero_b)
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_CODE_PRODUCT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_CODE_PRODUCT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime_check/kernel.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// A product of given size with the location of its operands; created in Prepare.
class CodeProduct {
 public:
  // Writes rows [first, first + count) of the left matrix at a distance of padded_depth() elements, with zeros after
  // the first `depth`, and the sum of each row.
  using GatherRows = absl::FunctionRef<void(int64_t first, int64_t count, int16_t* rows, uint32_t* sums)>;

  // Creates a product. `right` is the input with the right matrix, whose element [k][j] is at k * row_step + j *
  // column_step. Codes of qint8 start at -128, so their zero point is 128 more than for quint8. Packs the matrix now if
  // its value is known. Requests the scratch memory of the node. Returns InvalidArgument if sizes exceed the address
  // space.
  static absl::StatusOr<CodeProduct> Prepare(PrepareContext* context, int64_t rows, int64_t depth, int64_t columns,
                                             int right, int64_t row_step, int64_t column_step);

  int64_t padded_depth() const { return padded_depth_; }

  // Writes output[rows][columns]. The zero points are taken modulo 2^32. No element of the left matrix may exceed
  // `largest` in magnitude.
  void Run(ComputeContext* context, uint32_t zero_a, uint32_t zero_b, int64_t largest, GatherRows gather,
           int32_t* output) const;

 private:
  void Pack(const uint8_t* b, int16_t* packed, uint32_t* sums) const;

  int64_t rows_ = 0, depth_ = 0, columns_ = 0;
  int64_t padded_depth_ = 0;
  int right_ = 0;
  int64_t row_step_ = 0, column_step_ = 0;
  uint8_t flipped_ = 0;  // XOR mask that converts 8-bit codes to count from 0.
  // Size and number of units of work.
  int64_t block_rows_ = 0, row_blocks_ = 0, group_columns_ = 0, column_groups_ = 0;
  Tensor packed_, sums_;  // The packed right matrix and its sums; unset if its value is not constant.
  // Offsets of parts of the scratch memory.
  int64_t packed_part_ = 0, sums_part_ = 0, terms_part_ = 0, rows_part_ = 0, row_sums_part_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_CODE_PRODUCT_H_
