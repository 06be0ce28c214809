// The delegate for float image networks. It runs convolutions and matrix products with oneDNN, with the following steps
// fused, and all other nodes with its own loops.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

// Creates the delegate. Returns NotFound if oneDNN is not installed, FailedPrecondition if it cannot be loaded,
// Unimplemented for bf16, int8 and bf16x3 if the processor lacks AVX-512, VNNI and AMX respectively, because oneDNN
// then has no fast convolutions. `packed` caches packed weights for all its users; it may be null. Without
// `uses_winograd`, all convolutions are computed directly.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeOneDnnDelegate(PrecisionPlan plan,
                                                                   std::shared_ptr<PackedWeights> packed = nullptr,
                                                                   bool uses_winograd = true);

// Returns the properties that determine the layout of packed weights, besides the model and the precision; empty if
// oneDNN cannot be loaded.
std::string OneDnnPackingIdentity();

// Returns the path of oneDNN, empty if it is not loaded.
std::string OneDnnLibraryPath();

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
