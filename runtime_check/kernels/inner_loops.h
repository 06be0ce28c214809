// The inner loops of the float kernels, compiled once for each instruction set and selected at run time.
//
// The body (inner_loops_body.h) is written once, with GCC's vector extension. inner_loops_<set>.cc compile it for SSE2
// (available on every x86-64; for other machines the compiler lowers it to their instructions), AVX2 with FMA, and
// AVX-512F. No compiler flags are needed: the functions have target attributes. All pointers may have any alignment,
// and no loop reads or writes past the elements that its arguments describe.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace permafrost {

// The strides of a depthwise convolution in the input: between taps in x, between rows of taps in y, and between
// neighbouring output pixels.
struct DepthwiseWindow {
  int64_t channels;
  int64_t taps_y, taps_x;      // Only taps inside the image.
  int64_t tap_step, row_step;  // Strides in the input, in floats.
  int64_t pixel_step;          // Stride in the input, in floats; output pixels are `channels` apart.
  int64_t filter_tap_step, filter_row_step;
};

// The inner loops of one instruction set. All counts are in floats unless stated otherwise.
struct InnerLoops {
  const char* name;   // "sse2", "avx2", "avx512": the name in messages and benchmarks.
  int vector_floats;  // Floats in one register.
  int panel_width;    // Columns of one full panel of the right matrix (gemm.h): two registers.
  int tile_rows;      // Rows of one register tile.

  // c[rows][columns] = a[rows][depth] * b[depth][width], or += when `accumulate`. `b` is a slab of a packed panel; its
  // width is one register if columns fit there, else two. REQUIRES: 1 <= columns <= panel_width.
  void (*multiply_panel)(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride, const float* b,
                         float* c, int64_t c_stride, bool accumulate);

  // Computes output pixels [0, pixels) of a depthwise convolution with one output channel per input channel.
  void (*depthwise)(const DepthwiseWindow& window, int64_t pixels, const float* input, const float* filter,
                    float* output);

  // Each function makes one pass over `count` elements. `y` may be `x`.
  void (*add_to)(int64_t count, const float* x, float* y);                    // y += x
  void (*max_to)(int64_t count, const float* x, float* y);                    // y = x > y ? x : y
  void (*scale)(int64_t count, float factor, float* y);                       // y *= factor
  void (*add_scaled)(int64_t count, float factor, const float* x, float* y);  // y += factor * x
  void (*add)(int64_t count, const float* a, const float* b, float* y);       // y = a + b
  void (*add_scalar)(int64_t count, const float* x, float b, float* y);       // y = x + b
  // y = (x - mean) * factor + offset, with one value of each per element.
  void (*normalize)(int64_t count, const float* x, const float* mean, const float* factor, const float* offset,
                    float* y);
  void (*normalize_all)(int64_t count, const float* x, float mean, float factor, float offset, float* y);

  void (*relu)(int64_t count, const float* x, float* y);                     // x < 0 ? 0 : x, so NaN stays NaN
  void (*relu6)(int64_t count, const float* x, float* y);                    // As relu, limited to 6.
  void (*leaky_relu)(int64_t count, float alpha, const float* x, float* y);  // x < 0 ? alpha * x : x
  void (*exp)(int64_t count, const float* x, float* y);                      // 2 ulp; overflow to infinity.
  void (*sigmoid)(int64_t count, const float* x, float* y);
  void (*tanh)(int64_t count, const float* x, float* y);
};

// Returns the best loops that this machine supports; the selection is made once. Thread-safe.
const InnerLoops& BestInnerLoops();

// Returns all loops that this machine supports, the best last.
absl::Span<const InnerLoops* const> SupportedInnerLoops();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_
