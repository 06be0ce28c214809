// The inner loops of integer matrix products with rows of int16, compiled once for each instruction set and selected at
// run time. byte_tiles.h has those with rows of bytes.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace permafrost {

// A product of a few rows of int16 with one panel of a packed matrix of int8. A panel has `width` columns; for each
// pair of successive depths it has 2 * width weights, those of one column together.
struct IntegerLoops {
  const char* name;
  int width;  // Columns of a panel.
  int rows;   // Rows of the largest tile.

  // out[r][c] = start[c] + sum over k of a[r][k] * b[k][c] for r in [0, row_count) and c in [0, width), modulo 2^32.
  // Rows of `a` are `a_stride` bytes apart and have 2 * pairs elements.
  void (*multiply)(int64_t row_count, const char* a, int64_t a_stride, const int8_t* b, int64_t pairs,
                   const int32_t* start, int32_t* out);
};

constexpr int kMaxPanelWidth = 32;

// Returns the best loops of this machine. Thread-safe.
const IntegerLoops& BestIntegerLoops();

// Returns whether the processor has AVX-512 with dot products of bytes (VNNI), and the build uses it.
bool SupportsByteDotProducts();

// Returns all loops that this machine supports, the best last.
absl::Span<const IntegerLoops* const> SupportedIntegerLoops();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_
