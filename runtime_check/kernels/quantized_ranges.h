// The arithmetic of quantised codes: which real number a code stands for in a range, which code is nearest to a number,
// and which range a product spans.
//
// A range [min, max] is cut into 2^bits - 1 equal steps. The lowest code stands for the multiple of a step that is
// nearest to min, so that some code stands for 0 exactly whenever 0 lies in the range; each further code is one step
// more. Numbers become codes by rounding halves away from zero.
//
// TensorFlow has this arithmetic twice, once in double for single values and once in float for whole tensors, and the
// two may differ by one code. Both are here, since an op gives TensorFlow's numbers only with the one that it uses.
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

// What the codes of a tensor span.
struct Range {
  float min = 0, max = 0;
};

// --- In Prepare ------------------------------------------------------------------------------------------------------

// InvalidArgument unless inputs [first, first + count), which are ends of ranges, hold one float each.
absl::Status RequireRangeInputs(PrepareContext* context, int first, int count);
// Outputs `first` and first + 1 are the ends of one range.
void SetRangeOutputShapes(PrepareContext* context, int first = 1);

// --- In Compute ------------------------------------------------------------------------------------------------------

// The range whose ends are inputs `first` and first + 1.
inline Range RangeInput(const ComputeContext& context, int first) {
  return {*context.input<float>(first), *context.input<float>(first + 1)};
}
inline void SetRangeOutput(ComputeContext* context, Range range, int first = 1) {
  *context->output<float>(first) = range.min;
  *context->output<float>(first + 1) = range.max;
}
// InvalidArgument unless the range has finite ends and max is larger than min; `name` is what the op calls it.
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

// Towards zero; what int64 does not hold becomes its nearest end, NaN becomes 0.
inline int64_t Saturated(double x) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(x > -kEnd)) return std::isnan(x) ? 0 : std::numeric_limits<int64_t>::min();
  return x < kEnd ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::max();
}

// The code of x, which may lie outside of the codes that there are. Kept to 2^62, so that callers may add and subtract.
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

// The code of 0, by which codes are moved before they are multiplied. Wraps round where int32 does not hold it.
template <typename Code>
uint32_t ZeroPoint(Range range) {
  return static_cast<uint32_t>(UnclampedCode<Code>(0.f, range));
}

// The range of 32-bit products of codes of types A and B: a step of it is the product of their steps.
template <typename A, typename B>
Range ProductRange(Range a, Range b) {
  const float step_a = (a.max - a.min) / static_cast<float>(kHighest<A> - kLowest<A>);
  const float step_b = (b.max - b.min) / static_cast<float>(kHighest<B> - kLowest<B>);
  const float step = step_a * step_b;
  return {step * static_cast<float>(kLowest<int32_t>), step * static_cast<float>(kHighest<int32_t>)};
}

// --- Whole tensors, in float -----------------------------------------------------------------------------------------

// Codes to numbers: offset + code * step.
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

// Numbers to codes: round(x * scale) - first, kept within the codes. NaN becomes the lowest.
template <typename Code>
struct RealsToCodes {
  explicit RealsToCodes(Range range) {
    scale = static_cast<float>(
        range.min == range.max ? 0.0 : (static_cast<double>(kSteps<Code>) - 1.0) / (range.max - range.min));
    first = std::round(range.min * scale) - static_cast<float>(kLowest<Code>);
  }
  Code operator()(float x) const {
    constexpr auto kBottom = static_cast<float>(kLowest<Code>);
    // Of 32 bits, the largest code that float holds.
    constexpr float kTop = sizeof(Code) == 4 ? 2147483520.f : static_cast<float>(kHighest<Code>);
    const float code = std::round(x * scale) - first;
    const float above = code > kBottom ? code : kBottom;
    return static_cast<Code>(above < kTop ? above : kTop);
  }

  float scale, first;
};

// Codes of 8 bits to codes of 32 bits: code 0 and the distance of two codes are taken over exactly, the rest follows.
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
