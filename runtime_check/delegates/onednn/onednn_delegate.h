// The delegate for float networks of images: oneDNN's convolutions and matrix products with what follows them fused,
// and our own loops for the rest.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"

namespace permafrost {

// Of products and of what lies between; sums are of float, and so is the interface.
enum class OneDnnPrecision { kF32, kBf16 };

// Unimplemented for kBf16 on a processor without AVX-512, on which oneDNN has no convolutions of bfloat16.
absl::StatusOr<std::shared_ptr<const Delegate>> MakeOneDnnDelegate(OneDnnPrecision precision);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_ONEDNN_DELEGATE_H_
