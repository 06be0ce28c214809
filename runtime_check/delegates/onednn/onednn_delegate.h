// The delegate for float networks of images: oneDNN's convolutions and matrix products with what follows them fused,
// and our own loops for the rest.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

// Unimplemented for bf16, int8, or bf16x3 on a processor without AVX-512, VNNI, or AMX: there are no fast convolutions
// of them there.
// Weights are packed once for all who use `packed`, which may be null.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeOneDnnDelegate(PrecisionPlan plan,
                                                                   std::shared_ptr<PackedWeights> packed = nullptr);

// What the layout of its packed weights depends on beside the model and the precision.
std::string OneDnnPackingIdentity();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
