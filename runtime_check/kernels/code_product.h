// Products of matrices of 8-bit codes, each moved by its zero point, with sums of 32 bits that wrap round:
//
//   c[i][j] = sum over k of (a[i][k] - zero_a) * (b[k][j] - zero_b)
//
// The right matrix is packed once, column by column; rows of the left one are gathered block by block. Both are widened
// to 16 bits, whose products a machine adds up in pairs to 32 bits. Codes are multiplied as they are, b less 128, which
// keeps sums far from overflow; what the zero points add is known from the sums of rows and columns:
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

// A product of given size and where its data lies; made in Prepare.
class CodeProduct {
 public:
  // Writes rows [first, first + count) of the left matrix, padded_depth() elements from one to the next, with zeros
  // behind the first `depth`, and the sum of each row.
  using GatherRows = absl::FunctionRef<void(int64_t first, int64_t count, int16_t* rows, uint32_t* sums)>;

  // `right` is the input with the right matrix, whose element [k][j] lies at k * row_step + j * column_step; codes of
  // qint8 count from -128, so that the zero point of theirs is 128 more than it is for quint8. Packs it now if its
  // value is known. Requests the scratch memory of the node. InvalidArgument when sizes exceed what can be addressed.
  static absl::StatusOr<CodeProduct> Prepare(PrepareContext* context, int64_t rows, int64_t depth, int64_t columns,
                                             int right, int64_t row_step, int64_t column_step);

  int64_t padded_depth() const { return padded_depth_; }

  // Writes output[rows][columns]. The zero points are taken modulo 2^32. No element of the left matrix exceeds
  // `largest` in magnitude.
  void Run(ComputeContext* context, uint32_t zero_a, uint32_t zero_b, int64_t largest, GatherRows gather,
           int32_t* output) const;

 private:
  void Pack(const uint8_t* b, int16_t* packed, uint32_t* sums) const;

  int64_t rows_ = 0, depth_ = 0, columns_ = 0;
  int64_t padded_depth_ = 0;
  int right_ = 0;
  int64_t row_step_ = 0, column_step_ = 0;
  uint8_t flipped_ = 0;  // What codes of 8 bits are combined with to count from 0.
  int64_t block_rows_ = 0, row_blocks_ = 0, group_columns_ = 0, column_groups_ = 0;  // One piece of work.
  Tensor packed_, sums_;  // Of the right matrix; unset when its value is not known beforehand.
  // Offsets of parts of the scratch memory.
  int64_t packed_part_ = 0, sums_part_ = 0, terms_part_ = 0, rows_part_ = 0, row_sums_part_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_CODE_PRODUCT_H_
