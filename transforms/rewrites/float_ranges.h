// Computes ranges of float tensors, and iterates over large tensors in blocks and on several threads.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FLOAT_RANGES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FLOAT_RANGES_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>

#include "graph/tensor.h"
#include "transforms/pipeline/thread_team.h"

namespace permafrost {

// Number of elements per step of an arithmetic loop. A block and its results fit the first-level cache, and the
// constant trip count lets the compiler vectorise.
inline constexpr size_t kBlock = 1024;

struct FloatRange {
  float min = 0;  // Least finite element; 0 if there are none.
  float max = 0;
  bool has_zero = false;  // True if an element is 0 or -0.
  bool all_finite = true;
  bool any_finite = false;
};

// Returns the range, computed in one pass over the elements.
FloatRange FindRange(UnalignedSpan<float> values, ThreadTeam* team);

// Calls f(start, end) for pieces that partition [0, count), each on its own thread if there is enough work. Pieces
// start at multiples of kBlock.
void ForPieces(size_t count, int num_threads, const std::function<void(size_t start, size_t end)>& f);

// Copies block [start, start + kBlock) to `block`, zero-filled past the end, and returns the number of elements copied.
inline size_t LoadBlock(UnalignedSpan<float> values, size_t start, float* block) {
  const size_t count = std::min(kBlock, values.size() - start);
  std::memcpy(block, values.bytes() + start * sizeof(float), count * sizeof(float));
  std::fill(block + count, block + kBlock, 0.0f);
  return count;
}

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FLOAT_RANGES_H_
