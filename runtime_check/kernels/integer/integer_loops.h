// The inner loops of integer matrix products, compiled once for each instruction set and selected at run time.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace permafrost {

// A product of a few rows with one panel of a packed matrix of int8. A panel has `width` columns; for each group of
// `group` successive depths it has width * group weights, those of one column together.
struct IntegerLoops {
  const char* name;
  int group;  // 4: rows are bytes, unsigned. 2: rows are int16.
  int width;  // Columns of a panel.
  int rows;   // Rows of the largest tile.

  // out[r][c] = start[c] + sum over k of a[r][k] * b[k][c] for r in [0, row_count) and c in [0, width), modulo 2^32.
  // Rows of `a` are `a_stride` bytes apart and have groups * group elements.
  void (*multiply)(int64_t row_count, const char* a, int64_t a_stride, const int8_t* b, int64_t groups,
                   const int32_t* start, int32_t* out);
};

constexpr int kMaxPanelWidth = 32;

// Returns the best loops of this machine for rows of int16, and for rows of bytes; the latter may have a group of 2,
// where no instruction multiplies bytes. Thread-safe.
const IntegerLoops& BestWordLoops();
const IntegerLoops& BestByteLoops();

// Returns all loops that this machine supports, the best of each group last.
absl::Span<const IntegerLoops* const> SupportedIntegerLoops();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_LOOPS_H_
