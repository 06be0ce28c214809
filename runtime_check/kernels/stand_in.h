// Lets a kernel compute types that something else can stand in for: floats for 16-bit floats, numbers for strings.
//
//   .Prepare(PrepareWidened<PrepareConvolution>).Compute(ComputeWidened<ComputeConvolution>)
//
// A node with such values is prepared and computed as if they were of the other type: inputs are converted into scratch
// memory, the kernel runs on that, and its outputs are converted back. Other nodes go straight to the kernel.
//
// Widened: half and bfloat16 become float. All of the kernel's steps are float steps, and each output is rounded once.
// Numbered: each input string becomes its number, an int64 counted from 1; an output element becomes the string of that
// number, and 0, as kernels pad with, the empty string. For kernels that move elements and do not look at them.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STAND_IN_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STAND_IN_H_

#include "absl/status/status.h"
#include "runtime_check/kernel.h"

namespace permafrost {

enum class StandIn { kFloatForNarrow, kNumberForString };

absl::Status PrepareWithStandIn(PrepareContext* context, StandIn kind, PrepareFunction prepare);
absl::Status ComputeWithStandIn(ComputeContext* context, StandIn kind, ComputeFunction compute);

// In a selective build the detour is left out of files of kernels that cannot meet such values.
template <PrepareFunction prepare>
absl::Status PrepareWidened(PrepareContext* context) {
  if constexpr (!IsSelected(DType::kHalf) && !IsSelected(DType::kBFloat16)) return prepare(context);
  return PrepareWithStandIn(context, StandIn::kFloatForNarrow, prepare);
}
template <ComputeFunction compute>
absl::Status ComputeWidened(ComputeContext* context) {
  if constexpr (!IsSelected(DType::kHalf) && !IsSelected(DType::kBFloat16)) return compute(context);
  return ComputeWithStandIn(context, StandIn::kFloatForNarrow, compute);
}
template <PrepareFunction prepare>
absl::Status PrepareNumbered(PrepareContext* context) {
  if constexpr (!IsSelected(DType::kString)) return prepare(context);
  return PrepareWithStandIn(context, StandIn::kNumberForString, prepare);
}
template <ComputeFunction compute>
absl::Status ComputeNumbered(ComputeContext* context) {
  if constexpr (!IsSelected(DType::kString)) return compute(context);
  return ComputeWithStandIn(context, StandIn::kNumberForString, compute);
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_STAND_IN_H_
