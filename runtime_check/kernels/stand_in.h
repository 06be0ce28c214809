// Adapters that let a kernel compute additional types by conversion: 16-bit floats as floats, strings as numbers.
//
//   .Prepare(PrepareWidened<PrepareConvolution>).Compute(ComputeWidened<ComputeConvolution>)
//
// A node with such types is prepared and computed as if it had the other type: inputs are converted into scratch
// memory, the kernel runs on them, and its outputs are converted back. For other nodes the kernel is called directly.
//
// Widened: half and bfloat16 become float. All steps of the kernel are float steps, and each output is rounded once.
//
// Numbered: each input string is replaced by an int64 number counted from 1, and an output element by the string with
// that number; 0, the padding value of kernels, becomes the empty string. Only for kernels that move elements without
// reading them.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_STAND_IN_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_STAND_IN_H_

#include "absl/status/status.h"
#include "runtime_check/kernel.h"

namespace permafrost {

enum class StandIn { kFloatForNarrow, kNumberForString };

absl::Status PrepareWithStandIn(PrepareContext* context, StandIn kind, PrepareFunction prepare);
absl::Status ComputeWithStandIn(ComputeContext* context, StandIn kind, ComputeFunction compute);

// A selective build omits the conversion for kernels whose models have no such types.
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
