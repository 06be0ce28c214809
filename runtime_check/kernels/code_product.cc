// Implements products of matrices of 8-bit codes.
#include "runtime_check/kernels/code_product.h"

#include <algorithm>
#include <utility>

#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {
namespace {

constexpr int64_t kDepthStep = 32;  // 16-bit elements of the widest register, so that loops have no tail.
// Columns and rows of one tile: their sums and operands fit in the 16 registers of AVX2.
constexpr int64_t kTileColumns = 4, kTileRows = 2;
// A block of rows stays in the L2 cache: 128 KB.
constexpr int64_t kBlockElements = 64 << 10;

// Computes sums[r][c] += row r of `a` times column c of `b`.
template <int kRows, int kColumns>
PF_INLINE inline void AddTile(int64_t depth, const int16_t* a, const int16_t* b, int64_t stride,
                              uint32_t (*sums)[kTileColumns]) {
  int32_t tile[kRows][kColumns] = {};
  for (int64_t k = 0; k < depth; ++k) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) tile[r][c] += a[r * stride + k] * b[c * stride + k];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sums[r][c] += static_cast<uint32_t>(tile[r][c]);
  }
}

// One unit of work: output[rows][columns] from gathered rows and packed columns.
struct Piece {
  int64_t rows, columns, depth, depth_block, stride;
  const int16_t *a, *b;
  const uint32_t *row_terms, *column_terms;
  int32_t* output;
  int64_t output_stride;

  PF_INLINE inline void Run() const {
    for (int64_t column = 0; column < columns; column += kTileColumns) {
      const int64_t tile_columns = std::min(kTileColumns, columns - column);
      for (int64_t row = 0; row < rows; row += kTileRows) {
        const int64_t tile_rows = std::min(kTileRows, rows - row);
        uint32_t sums[kTileRows][kTileColumns] = {};
        for (int64_t k = 0; k < depth; k += depth_block) {
          const int64_t count = std::min(depth_block, depth - k);
          const int16_t *left = a + row * stride + k, *right = b + column * stride + k;
          if (tile_columns == kTileColumns && tile_rows == kTileRows) {
            AddTile<kTileRows, kTileColumns>(count, left, right, stride, sums);
          } else if (tile_columns == kTileColumns) {
            AddTile<1, kTileColumns>(count, left, right, stride, sums);
          } else {
            for (int64_t r = 0; r < tile_rows; ++r) {
              for (int64_t c = 0; c < tile_columns; ++c) {
                uint32_t sum[1][kTileColumns] = {};
                AddTile<1, 1>(count, left + r * stride, right + c * stride, stride, sum);
                sums[r][c] += sum[0][0];
              }
            }
          }
        }
        for (int64_t r = 0; r < tile_rows; ++r) {
          for (int64_t c = 0; c < tile_columns; ++c) {
            output[(row + r) * output_stride + column + c] =
                static_cast<int32_t>(sums[r][c] + row_terms[row + r] - column_terms[column + c]);
          }
        }
      }
    }
  }
};

}  // namespace

absl::StatusOr<CodeProduct> CodeProduct::Prepare(PrepareContext* context, int64_t rows, int64_t depth, int64_t columns,
                                                 int right, int64_t row_step, int64_t column_step) {
  if (rows == 0 || columns == 0) return CodeProduct();  // Nothing is computed, so sizes are not limited.
  CodeProduct product;
  product.rows_ = rows;
  product.depth_ = depth;
  product.columns_ = columns;
  product.right_ = right;
  product.row_step_ = row_step;
  product.column_step_ = column_step;
  product.flipped_ = context->input_type(right) == DType::kQInt8 ? 0x80 : 0;
  int64_t packed_size = 0;
  if (__builtin_add_overflow(depth, kDepthStep - 1, &product.padded_depth_)) {
    return absl::InvalidArgumentError("the matrix is too large");
  }
  product.padded_depth_ = product.padded_depth_ / kDepthStep * kDepthStep;
  if (__builtin_mul_overflow(product.padded_depth_, columns, &packed_size)) {
    return absl::InvalidArgumentError("the matrix is too large");
  }

  // Divides rows among the threads, and columns only if there are too few rows.
  const int64_t threads = context->num_threads();
  product.block_rows_ =
      std::clamp<int64_t>(kBlockElements / std::max<int64_t>(product.padded_depth_, 1), kTileRows, 64);
  product.block_rows_ = std::max<int64_t>(1, std::min(product.block_rows_, (rows + threads - 1) / threads));
  product.row_blocks_ = (rows + product.block_rows_ - 1) / product.block_rows_;
  const int64_t groups =
      product.row_blocks_ >= threads ? 1 : (threads + product.row_blocks_) / (product.row_blocks_ + 1);
  product.group_columns_ = (columns + groups - 1) / groups;
  product.group_columns_ =
      std::max(kTileColumns, (product.group_columns_ + kTileColumns - 1) / kTileColumns * kTileColumns);
  product.column_groups_ = (columns + product.group_columns_ - 1) / product.group_columns_;

  ScratchParts parts;
  if (const Tensor* value = context->input_value(right); value != nullptr) {
    char *packed = nullptr, *sums = nullptr;
    PF_ASSIGN_OR_RETURN(product.packed_, Tensor::Allocate(DType::kInt16, Shape({packed_size}), &packed));
    PF_ASSIGN_OR_RETURN(product.sums_, Tensor::Allocate(DType::kUint32, Shape({columns}), &sums));
    product.Pack(reinterpret_cast<const uint8_t*>(value->bytes().data()), reinterpret_cast<int16_t*>(packed),
                 reinterpret_cast<uint32_t*>(sums));
    context->ReleaseInput(right);
  } else {
    PF_ASSIGN_OR_RETURN(product.packed_part_, parts.Add(packed_size, sizeof(int16_t)));
    PF_ASSIGN_OR_RETURN(product.sums_part_, parts.Add(columns, sizeof(uint32_t)));
  }
  PF_ASSIGN_OR_RETURN(product.terms_part_, parts.Add(columns, sizeof(uint32_t)));
  int64_t block_size = 0;
  if (__builtin_mul_overflow(product.block_rows_ * threads, product.padded_depth_, &block_size)) {
    return absl::InvalidArgumentError("the matrix is too large");
  }
  PF_ASSIGN_OR_RETURN(product.rows_part_, parts.Add(block_size, sizeof(int16_t)));
  PF_ASSIGN_OR_RETURN(product.row_sums_part_, parts.Add(product.block_rows_ * threads, sizeof(uint32_t)));
  parts.Request(context);
  return product;
}

void CodeProduct::Pack(const uint8_t* b, int16_t* packed, uint32_t* sums) const {
  constexpr int64_t kColumns = 32;  // Adjacent columns, read together.
  for (int64_t begin = 0; begin < columns_; begin += kColumns) {
    const int64_t end = std::min(columns_, begin + kColumns);
    for (int64_t j = begin; j < end; ++j) {
      sums[j] = 0;
      std::fill(packed + j * padded_depth_ + depth_, packed + (j + 1) * padded_depth_, int16_t{0});
    }
    for (int64_t k = 0; k < depth_; ++k) {
      for (int64_t j = begin; j < end; ++j) {
        const auto code = static_cast<uint8_t>(b[k * row_step_ + j * column_step_] ^ flipped_);
        sums[j] += code;
        packed[j * padded_depth_ + k] = static_cast<int16_t>(code - 128);
      }
    }
  }
}

void CodeProduct::Run(ComputeContext* context, uint32_t zero_a, uint32_t zero_b, int64_t largest, GatherRows gather,
                      int32_t* output) const {
  if (rows_ == 0 || columns_ == 0) return;
  const auto* packed = reinterpret_cast<const int16_t*>(packed_.bytes().data());
  const auto* sums = reinterpret_cast<const uint32_t*>(sums_.bytes().data());
  char* scratch = context->scratch();
  if (packed_.dtype() == DType::kInvalid) {
    auto* own_packed = reinterpret_cast<int16_t*>(scratch + packed_part_);
    auto* own_sums = reinterpret_cast<uint32_t*>(scratch + sums_part_);
    Pack(context->input_bits<uint8_t>(right_), own_packed, own_sums);
    packed = own_packed;
    sums = own_sums;
  }
  auto* column_terms = reinterpret_cast<uint32_t*>(scratch + terms_part_);
  for (int64_t j = 0; j < columns_; ++j) {
    column_terms[j] = zero_a * (sums[j] - static_cast<uint32_t>(depth_) * zero_b);
  }
  // The maximum depth for which the sum of products, each at most 128 * largest in magnitude, is less than 2^31.
  const int64_t depth_block =
      ((int64_t{1} << 31) - 1) / (128 * std::max<int64_t>(largest, 1)) / kDepthStep * kDepthStep;
  auto* all_rows = reinterpret_cast<int16_t*>(scratch + rows_part_);
  auto* all_sums = reinterpret_cast<uint32_t*>(scratch + row_sums_part_);
  ForEachPiece(context->threads(), row_blocks_ * column_groups_, [&](int worker, int64_t number) {
    const int64_t first = number / column_groups_ * block_rows_;
    const int64_t column = number % column_groups_ * group_columns_;
    int16_t* rows = all_rows + worker * block_rows_ * padded_depth_;
    uint32_t* row_terms = all_sums + worker * block_rows_;
    const int64_t count = std::min(block_rows_, rows_ - first);
    gather(first, count, rows, row_terms);
    for (int64_t r = 0; r < count; ++r) row_terms[r] *= 128u - zero_b;
    const Piece piece = {count,
                         std::min(group_columns_, columns_ - column),
                         padded_depth_,
                         depth_block,
                         padded_depth_,
                         rows,
                         packed + column * padded_depth_,
                         row_terms,
                         column_terms + column,
                         output + first * columns_ + column,
                         columns_};
    Multiversion([&]() PF_INLINE { piece.Run(); });
  });
}

}  // namespace permafrost
