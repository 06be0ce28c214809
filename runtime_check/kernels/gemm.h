// Matrix products of floats: c = a * b with b packed beforehand.
//
// Blocking. The right matrix is packed once (constant weights: in Prepare) into panels of InnerLoops::panel_width
// columns; within a panel, the columns of one row of b are contiguous. The left matrix is read in place, row by row: a
// row of `a` is one output pixel or one example, so a 1x1 convolution needs no copy. A product loops over
//
//   depth in blocks of kDepthBlock      the rows of `a` in a tile and the slab of the panel stay in the L1 cache:
//                                       14 * 192 * 4 bytes + 192 * 32 * 4 bytes = 35 KB, of which 9 KB are read more
//                                       than once; the cache has 32 KB or 48 KB
//     panels                            the slab (24 KB) is read once from the L2 cache
//       tiles of tile_rows rows         sums stay in registers for a whole block
//
// Between two blocks of depth each result is thus written and read once: 2 memory accesses for 192 multiplications.
// Callers divide the rows into blocks that fit in the L2 cache (DivideWork) and distribute the blocks among threads.
//
// The order of additions depends only on the depth and the instruction set, never on threads or blocks of rows.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// Uninitialised memory for floats, aligned to 64 bytes. Owned.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  ~FloatBuffer();
  FloatBuffer(FloatBuffer&& other) noexcept;
  FloatBuffer& operator=(FloatBuffer&& other) noexcept;

  // Allocates memory with undefined content. Returns ResourceExhausted if the allocation fails.
  static absl::StatusOr<FloatBuffer> Allocate(int64_t count);
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

// The shape of the right matrix: `depth` rows of `columns` columns.
struct PackedShape {
  int64_t depth = 0;
  int64_t columns = 0;

  // Returns the number of floats of the packed matrix; InvalidArgument if its size in bytes exceeds int64.
  absl::StatusOr<int64_t> Size(const InnerLoops& loops) const;
  int64_t NumPanels(const InnerLoops& loops) const;
};

// Packs b[depth][columns], whose elements are row_step and column_step floats apart.
void Pack(const InnerLoops& loops, const PackedShape& shape, const float* b, int64_t row_step, int64_t column_step,
          float* packed);

// Computes c[rows][columns] = a[rows][depth] * b for the columns of panels [panel_begin, panel_end). Strides are
// distances of rows, in floats; `a` and `c` point to the first row and column of the whole. Runs on the calling thread.
// A depth of 0 gives zeros.
void Multiply(const InnerLoops& loops, int64_t rows, const PackedShape& shape, const float* a, int64_t a_stride,
              const float* packed, float* c, int64_t c_stride, int64_t panel_begin, int64_t panel_end);

// A range [begin, end) of the terms of a sum.
struct DepthRange {
  int64_t begin, end;
};
// Computes the part of a product for the rows of b in `range`; the first column of `a` corresponds to the first of
// these rows. The result is added to `c`, or replaces it if the range begins at 0. Computing the parts in the order of
// their ranges gives the same bits as the whole product.
void MultiplyPart(const InnerLoops& loops, int64_t rows, const PackedShape& shape, DepthRange range, const float* a,
                  int64_t a_stride, const float* packed, float* c, int64_t c_stride, int64_t panel_begin,
                  int64_t panel_end);

// The division of a product into equal units of work.
struct WorkGrid {
  int64_t rows_per_block = 1;  // A multiple of the rows per tile, or all rows.
  int64_t row_blocks = 0;
  int64_t panels_per_group = 1;
  int64_t panel_groups = 0;

  int64_t num_pieces() const { return row_blocks * panel_groups; }
};
// Divides a product. A block of rows of `a` fits in the L2 cache and all threads have work; panels are divided only if
// there are too few rows.
WorkGrid DivideWork(const InnerLoops& loops, int64_t rows, const PackedShape& shape, int num_threads);

// Calls body(worker, piece) for each piece, in order within a worker. Workers are numbered from 0 and at most
// threads.num_threads(), so each can have its own part of the scratch memory. Pieces are divided evenly.
void ForEachPiece(ThreadPool& threads, int64_t pieces, absl::FunctionRef<void(int worker, int64_t piece)> body);

// Computes the whole product on all threads.
void ParallelMultiply(const InnerLoops& loops, ThreadPool& threads, int64_t rows, const PackedShape& shape,
                      const float* a, int64_t a_stride, const float* packed, float* c, int64_t c_stride);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_GEMM_H_
