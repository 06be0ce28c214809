// Flat loops over floats, compiled for several instruction sets and chosen when the program is loaded.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime_check/kernels/sampling.h"

namespace permafrost {
namespace onednn {

// loop_ops.def says what each op computes. `alpha` and `beta` are numbers of the op.
enum class LoopOp : uint8_t {
#define LOOP_UNARY(name, text, expression) k##name,
#define LOOP_BINARY(name, text, expression) k##name,
#define LOOP_FUNCTION(name, text) k##name,
#include "runtime_check/delegates/onednn/loop_ops.def"
};

inline bool IsBinary(LoopOp op) { return op >= LoopOp::kAdd; }
absl::string_view NameOf(LoopOp op);

// y[i] = op(a[i], b[i]); `b` is not looked at by an op of one operand. `y` may be `a` or `b`. NaN stays NaN as in
// TensorFlow.
void RunLoop(LoopOp op, int64_t count, const float* a, const float* b, float alpha, float beta, float* y);

// Between float and bfloat16, to the nearest, ties to even. `from` and `to` do not overlap.
void ToBf16(int64_t count, const float* from, uint16_t* to);
void FromBf16(int64_t count, const uint16_t* from, float* to);

// Between numbers and integers of eight bits that stand for `scale` times themselves: to the nearest, ties to even, and
// to the last one for what is beyond. What NaN becomes is not told.
void ToU8(int64_t count, float scale, const float* from, uint8_t* to);
void ToS8(int64_t count, float scale, const float* from, int8_t* to);
void FromU8(int64_t count, float scale, const uint8_t* from, float* to);
void FromS8(int64_t count, float scale, const int8_t* from, float* to);

// Scalar products of blocks: both have `rows` rows of `count` floats; one stays, the other moves on by `move_step`
// floats from one result to the next.
struct Block {
  const float* data;
  int64_t row_step;  // In floats.
};
void MovingProducts(int64_t moves, int64_t move_step, int64_t rows, int64_t count, Block moving, Block fixed,
                    float* results);

// A line of a resized image: `row` says which lines of `image`, of `width` pixels, are mixed, `columns` which pixels.
// `scratch` has room for a line of `image`; none of the memories overlap.
void MixLine(const Tap& row, absl::Span<const Tap> columns, int64_t width, int64_t channels, const float* image,
             float* scratch, float* to);

// Whether one of `count` floats, at any address, is NaN or infinite.
bool HasNonFinite(const char* floats, int64_t count);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_LOOPS_H_
