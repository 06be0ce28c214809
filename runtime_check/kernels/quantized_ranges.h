// Arithmetic of quantised codes: the real number that a code represents in a range, the code nearest to a number, and
// the range of a product.
//
// A range [min, max] is divided into 2^bits - 1 equal steps. The lowest code represents the multiple of a step that is
// nearest to min, so 0 has an exact code if it lies in the range; each further code is one step more. Numbers are
// converted to codes by rounding halves away from zero.
//
// TensorFlow has two versions of this arithmetic, in double for single values and in float for whole tensors. They may
// differ by one code. Both are implemented here, since the results of an op match TensorFlow's only with the version
// that TensorFlow uses for it.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_QUANTIZED_RANGES_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_QUANTIZED_RANGES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "runtime_check/kernel.h"

namespace permafrost {

// The range of real numbers that the codes of a tensor span.
struct Range {
  float min = 0, max = 0;
};

// --- In Prepare ------------------------------------------------------------------------------------------------------

// Returns InvalidArgument unless inputs [first, first + count), which are ends of ranges, have one float each.
absl::Status RequireRangeInputs(PrepareContext* context, int first, int count);
// Sets the shapes of outputs `first` and first + 1, the ends of one range.
void SetRangeOutputShapes(PrepareContext* context, int first = 1);

// --- In Compute ------------------------------------------------------------------------------------------------------

// Returns the range whose ends are inputs `first` and first + 1.
inline Range RangeInput(const ComputeContext& context, int first) {
  return {*context.input<float>(first), *context.input<float>(first + 1)};
}
inline void SetRangeOutput(ComputeContext* context, Range range, int first = 1) {
  *context->output<float>(first) = range.min;
  *context->output<float>(first + 1) = range.max;
}
// Returns InvalidArgument unless the range has finite ends and max is larger than min; `name` is the name of the range
// in the op.
absl::Status CheckRange(Range range, absl::string_view name);

// --- One value, in double --------------------------------------------------------------------------------------------

// The integer type of the codes.
template <typename Element>
using CodeOf = decltype(Element().value);

template <typename Code>
inline constexpr int64_t kSteps = int64_t{1} << (8 * sizeof(Code));
template <typename Code>
inline constexpr int64_t kLowest = std::numeric_limits<Code>::min();
template <typename Code>
inline constexpr int64_t kHighest = std::numeric_limits<Code>::max();

// Rounds towards zero and saturates to int64. NaN becomes 0.
inline int64_t Saturated(double x) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(x > -kEnd)) return std::isnan(x) ? 0 : std::numeric_limits<int64_t>::min();
  return x < kEnd ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::max();
}

// Returns the code of x without clamping it to the range of codes. Saturates at 2^62, so that callers can add and
// subtract.
template <typename Code>
int64_t UnclampedCode(float x, Range range) {
  if (range.min == range.max) return kLowest<Code>;
  constexpr auto kCount = static_cast<double>(kSteps<Code>);
  const double scale = kCount / ((range.max - range.min) * (kCount / (kCount - 1.0)));
  constexpr int64_t kMost = int64_t{1} << 62;
  return std::clamp(Saturated(std::round(x * scale) - std::round(range.min * scale)), -kMost, kMost) + kLowest<Code>;
}

template <typename Code>
Code NearestCode(float x, Range range) {
  return static_cast<Code>(std::clamp(UnclampedCode<Code>(x, range), kLowest<Code>, kHighest<Code>));
}

template <typename Code>
float RealOf(Code code, Range range) {
  if (range.min == range.max) return range.min;
  constexpr auto kCount = static_cast<double>(kSteps<Code>);
  const double step = (range.max - range.min) * (kCount / (kCount - 1.0)) / kCount;
  const auto float_step = static_cast<float>(step);
  const double first = static_cast<double>(std::round(range.min / float_step) * float_step);
  return static_cast<float>(first + (static_cast<double>(code) - static_cast<double>(kLowest<Code>)) * step);
}

// Returns the code of 0, which is subtracted from codes before they are multiplied. Wraps around if it exceeds int32.
template <typename Code>
uint32_t ZeroPoint(Range range) {
  return static_cast<uint32_t>(UnclampedCode<Code>(0.f, range));
}

// Returns the range of 32-bit products of codes of types A and B. Its step is the product of the steps of A and B.
template <typename A, typename B>
Range ProductRange(Range a, Range b) {
  const float step_a = (a.max - a.min) / static_cast<float>(kHighest<A> - kLowest<A>);
  const float step_b = (b.max - b.min) / static_cast<float>(kHighest<B> - kLowest<B>);
  const float step = step_a * step_b;
  return {step * static_cast<float>(kLowest<int32_t>), step * static_cast<float>(kHighest<int32_t>)};
}

// --- Whole tensors, in float -----------------------------------------------------------------------------------------

// Converts codes to numbers: offset + code * step.
template <typename Code>
struct CodesToReals {
  explicit CodesToReals(Range range) {
    step = static_cast<float>((range.max - range.min) / (static_cast<double>(kSteps<Code>) - 1.0));
    const float first = range.min == range.max ? range.min : std::round(range.min / step) * step;
    offset = first - static_cast<float>(kLowest<Code>) * step;
  }
  float operator()(Code code) const { return offset + static_cast<float>(code) * step; }

  float step, offset;
};

// Converts numbers to codes: round(x * scale) - first, clamped to the codes. NaN becomes the lowest.
template <typename Code>
struct RealsToCodes {
  explicit RealsToCodes(Range range) {
    scale = static_cast<float>(
        range.min == range.max ? 0.0 : (static_cast<double>(kSteps<Code>) - 1.0) / (range.max - range.min));
    first = std::round(range.min * scale) - static_cast<float>(kLowest<Code>);
  }
  Code operator()(float x) const {
    constexpr auto kBottom = static_cast<float>(kLowest<Code>);
    // For 32-bit codes, the largest code that a float can represent.
    constexpr float kTop = sizeof(Code) == 4 ? 2147483520.f : static_cast<float>(kHighest<Code>);
    const float code = std::round(x * scale) - first;
    const float above = code > kBottom ? code : kBottom;
    return static_cast<Code>(above < kTop ? above : kTop);
  }

  float scale, first;
};

// Converts 8-bit codes to 32-bit codes. Code 0 and the distance of two codes are converted exactly; the others follow.
struct WidenedCodes {
  WidenedCodes(Range from, Range to) {
    zero = UnclampedCode<int32_t>(RealOf<uint8_t>(0, from), to);
    step = static_cast<int32_t>(UnclampedCode<int32_t>(RealOf<uint8_t>(1, from), to) - zero);
  }
  int32_t operator()(uint8_t code) const {
    return static_cast<int32_t>(std::clamp(zero + code * int64_t{step}, kLowest<int32_t>, kHighest<int32_t>));
  }

  int64_t zero;
  int32_t step;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_QUANTIZED_RANGES_H_
