// The inner loops of the float kernels, compiled once for each instruction set and chosen when the program runs.
//
// The body (inner_loops_body.h) is written once, in GCC's vector extension; inner_loops_<set>.cc compile it for SSE2
// (every x86-64 has it; on other machines the compiler lowers it to what they have), AVX2 with FMA, and AVX-512F. No
// compiler flags: the functions carry their target. All pointers may have any alignment, and no loop reads or writes
// past the elements that its arguments describe.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace permafrost {

// Input elements are a tap apart in x, a row of taps apart in y, and a pixel apart from one output pixel to the next.
struct DepthwiseWindow {
  int64_t channels;
  int64_t taps_y, taps_x;      // Only those inside the image.
  int64_t tap_step, row_step;  // In the input, in floats.
  int64_t pixel_step;          // In the input, in floats; output pixels are `channels` apart.
  int64_t filter_tap_step, filter_row_step;
};

// All counts are in floats unless said otherwise.
struct InnerLoops {
  const char* name;   // "sse2", "avx2", "avx512": as messages and benchmarks call the set.
  int vector_floats;  // Floats in one register.
  int panel_width;    // Columns of one full panel of the right matrix (gemm.h): two registers.
  int tile_rows;      // Rows of one register tile.

  // c[rows][columns] = a[rows][depth] * b[depth][width], or += when `accumulate`. `b` is a slab of a packed panel; its
  // width is one register if columns fit there, else two. REQUIRES: 1 <= columns <= panel_width.
  void (*multiply_panel)(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride, const float* b,
                         float* c, int64_t c_stride, bool accumulate);

  // Output pixels [0, pixels) of a depthwise convolution with one output channel for each input channel.
  void (*depthwise)(const DepthwiseWindow& window, int64_t pixels, const float* input, const float* filter,
                    float* output);

  // One pass over `count` elements each. `y` may be `x`.
  void (*add_to)(int64_t count, const float* x, float* y);                    // y += x
  void (*max_to)(int64_t count, const float* x, float* y);                    // y = x > y ? x : y
  void (*scale)(int64_t count, float factor, float* y);                       // y *= factor
  void (*add_scaled)(int64_t count, float factor, const float* x, float* y);  // y += factor * x
  void (*add)(int64_t count, const float* a, const float* b, float* y);       // y = a + b
  void (*add_scalar)(int64_t count, const float* x, float b, float* y);       // y = x + b
  // y = (x - mean) * factor + offset, with a value of each per element, or one for all.
  void (*normalize)(int64_t count, const float* x, const float* mean, const float* factor, const float* offset,
                    float* y);
  void (*normalize_all)(int64_t count, const float* x, float mean, float factor, float offset, float* y);

  void (*relu)(int64_t count, const float* x, float* y);                     // x < 0 ? 0 : x, so NaN stays NaN
  void (*relu6)(int64_t count, const float* x, float* y);                    // The same, and 6 above 6.
  void (*leaky_relu)(int64_t count, float alpha, const float* x, float* y);  // x < 0 ? alpha * x : x
  void (*exp)(int64_t count, const float* x, float* y);                      // 2 ulp; overflow to infinity.
  void (*sigmoid)(int64_t count, const float* x, float* y);
  void (*tanh)(int64_t count, const float* x, float* y);
};

// The best that this machine runs; the choice is made once. Thread-safe.
const InnerLoops& BestInnerLoops();

// All that this machine runs, the best last.
absl::Span<const InnerLoops* const> SupportedInnerLoops();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INNER_LOOPS_H_
