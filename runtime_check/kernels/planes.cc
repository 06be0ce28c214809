// Implements the transposition of float matrices, block by block.
#include "runtime_check/kernels/planes.h"

#include <algorithm>

namespace permafrost {

void TransposeMatrices(ThreadPool& threads, int64_t count, int64_t rows, int64_t columns, const float* from,
                       float* to) {
  if (count == 0 || rows == 0 || columns == 0) return;
  constexpr int64_t kBlock = 16;  // One cache line of floats, read and written as a whole.
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  threads.ParallelFor(count * row_blocks, 16, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const float* source = from + piece / row_blocks * rows * columns;
      float* target = to + piece / row_blocks * rows * columns;
      const int64_t r0 = piece % row_blocks * kBlock, r1 = std::min(rows, r0 + kBlock);
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
        const int64_t c1 = std::min(columns, c0 + kBlock);
        for (int64_t c = c0; c < c1; ++c) {
          for (int64_t r = r0; r < r1; ++r) target[c * rows + r] = source[r * columns + c];
        }
      }
    }
  });
}

}  // namespace permafrost
