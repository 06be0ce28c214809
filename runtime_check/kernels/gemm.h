// Matrix products of floats: c = a * b with b packed beforehand.
//
// Blocking. The right matrix is packed once (constant weights: in Prepare) into panels of InnerLoops::panel_width
// columns; within a panel, the columns of one row of b are contiguous. The left matrix is read in place, row by row: a
// row of `a` is one output pixel or one example, so a 1x1 convolution needs no copy at all. A product runs over
//
//   depth in blocks of kDepthBlock      a tile's rows of `a` and the slab of the panel stay in the first-level cache:
//                                       14 * 192 * 4 bytes + 192 * 32 * 4 bytes = 35 KB, and 9 KB are read more than
//                                       once, of the 32 KB or 48 KB there are
//     panels                            the slab (24 KB) is read once from the second level
//       tiles of tile_rows rows         sums stay in registers for a whole block
//
// so between two blocks of depth each result is written and read once: 2 memory accesses for 192 multiplications.
// Callers cut the rows into blocks that the second-level cache holds (DivideWork) and share those among threads.
//
// The order of the additions depends on the depth and on the instruction set alone, never on threads or blocks of rows.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// Memory of one whole matrix, aligned to 64 bytes. Owned.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  ~FloatBuffer();
  FloatBuffer(FloatBuffer&& other) noexcept;
  FloatBuffer& operator=(FloatBuffer&& other) noexcept;

  // ResourceExhausted when memory does not suffice. The content is undefined.
  static absl::StatusOr<FloatBuffer> Allocate(int64_t count);
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

// The right matrix: `depth` rows of `columns` columns.
struct PackedShape {
  int64_t depth = 0;
  int64_t columns = 0;

  // Floats that it takes. InvalidArgument when that exceeds what int64 counts in bytes.
  absl::StatusOr<int64_t> Size(const InnerLoops& loops) const;
  int64_t NumPanels(const InnerLoops& loops) const;
};

// Packs b[depth][columns], whose elements are row_step and column_step floats apart.
void Pack(const InnerLoops& loops, const PackedShape& shape, const float* b, int64_t row_step, int64_t column_step,
          float* packed);

// c[rows][columns] = a[rows][depth] * b for the columns of panels [panel_begin, panel_end). The strides are those from
// one row to the next, in floats; `a` and `c` point to the first row and column of the whole. Runs on the calling
// thread. A depth of 0 gives zeros.
void Multiply(const InnerLoops& loops, int64_t rows, const PackedShape& shape, const float* a, int64_t a_stride,
              const float* packed, float* c, int64_t c_stride, int64_t panel_begin, int64_t panel_end);

// The terms [begin, end) of a sum.
struct DepthRange {
  int64_t begin, end;
};
// The part of the product that the rows of b in `range` give, of which `a` has the first in its first column: added to
// what `c` holds, or in its place where the range begins at 0. The parts of a product, one after the other in the order
// of their ranges, give the bits of the whole.
void MultiplyPart(const InnerLoops& loops, int64_t rows, const PackedShape& shape, DepthRange range, const float* a,
                  int64_t a_stride, const float* packed, float* c, int64_t c_stride, int64_t panel_begin,
                  int64_t panel_end);

// How a product is cut into equal pieces of work.
struct WorkGrid {
  int64_t rows_per_block = 1;  // A multiple of the tile's rows, or all.
  int64_t row_blocks = 0;
  int64_t panels_per_group = 1;
  int64_t panel_groups = 0;

  int64_t num_pieces() const { return row_blocks * panel_groups; }
};
// Rows are cut so that a block of `a` fits the second-level cache and there is work for all threads; panels only where
// rows do not suffice for that.
WorkGrid DivideWork(const InnerLoops& loops, int64_t rows, const PackedShape& shape, int num_threads);

// Calls body(worker, piece) for each of the pieces, in order within a worker; workers are numbered from 0 and at most
// threads.num_threads(), so that each can own a part of the scratch memory. Pieces are shared out evenly.
void ForEachPiece(ThreadPool& threads, int64_t pieces, absl::FunctionRef<void(int worker, int64_t piece)> body);

// The whole product on all threads.
void ParallelMultiply(const InnerLoops& loops, ThreadPool& threads, int64_t rows, const PackedShape& shape,
                      const float* a, int64_t a_stride, const float* packed, float* c, int64_t c_stride);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_
