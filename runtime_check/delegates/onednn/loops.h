// Flat loops over floats, compiled for several instruction sets. The set is chosen when the program is loaded.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace onednn {

// The elementwise operations; loop_ops.def defines them. `alpha` and `beta` are parameters of the operation.
enum class LoopOp : uint8_t {
#define LOOP_UNARY(name, text, expression) k##name,
#define LOOP_BINARY(name, text, expression) k##name,
#define LOOP_FUNCTION(name, text) k##name,
#include "runtime_check/delegates/onednn/loop_ops.def"
};

inline bool IsBinary(LoopOp op) { return op >= LoopOp::kAdd; }
absl::string_view NameOf(LoopOp op);

// Computes y[i] = op(a[i], b[i]). A unary op does not read `b`. `y` may be `a` or `b`. NaN propagates as in TensorFlow.
void RunLoop(LoopOp op, int64_t count, const float* a, const float* b, float alpha, float beta, float* y);

// Convert between float and bfloat16, rounding to nearest, ties to even. `from` and `to` must not overlap.
void ToBf16(int64_t count, const float* from, uint16_t* to);
void FromBf16(int64_t count, const uint16_t* from, float* to);

// Convert between floats and 8-bit integers that represent `scale` times their value. Rounds to nearest, ties to even,
// and saturates. The result for NaN is unspecified.
void ToU8(int64_t count, float scale, const float* from, uint8_t* to);
void ToS8(int64_t count, float scale, const float* from, int8_t* to);
void FromU8(int64_t count, float scale, const uint8_t* from, float* to);
void FromS8(int64_t count, float scale, const int8_t* from, float* to);

// Scalar products of blocks. Both blocks have `rows` rows of `count` floats; the moving block advances by `move_step`
// floats from one result to the next, the fixed one does not.
struct Block {
  const float* data;
  int64_t row_step;  // In floats.
};
void MovingProducts(int64_t moves, int64_t move_step, int64_t rows, int64_t count, Block moving, Block fixed,
                    float* results);

// Computes one line of a resized image. `row` selects the lines of `image` (of `width` pixels) to interpolate,
// `columns` the pixels. `scratch` has room for one line of `image`. The buffers must not overlap.
void MixLine(const Tap& row, absl::Span<const Tap> columns, int64_t width, int64_t channels, const float* image,
             float* scratch, float* to);

float SumOf(int64_t count, const float* x);

// Computes y[i] = exp(x[i]) / sum of exp(x[j]) for each row of `count` floats. Returns false if a result is NaN. `y`
// may be `x`.
bool SoftmaxOf(int64_t rows, int64_t count, const float* x, float* y);

// Computes y[i] = (x[i] - mean) / sqrt(variance + epsilon) * factor[i] + offset[i], with the mean and the variance of
// x. If not `is_centred`, the mean counts as 0. `y` may be `x`.
void NormalizeOf(int64_t count, bool is_centred, float epsilon, const float* x, const float* factor,
                 const float* offset, float* y);

// Computes y[i] = condition[i * condition_step] ? a[i * a_step] : b[i * b_step].
void SelectOf(int64_t count, const bool* condition, int64_t condition_step, const float* a, int64_t a_step,
              const float* b, int64_t b_step, float* y);

// Returns true if any of `count` floats is NaN or infinite. The address may have any alignment.
bool HasNonFinite(const char* floats, int64_t count);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_
