// Options for the creation of a delegate.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_

#include <memory>
#include <string>

#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

class DelegateBlobs;  // runtime_check/delegates/delegate_blobs.h

// The name that selects the built-in kernels instead of a delegate.
inline constexpr char kReferenceDelegate[] = "reference";

struct DelegateOptions {
  std::string precision = "f32";
  std::shared_ptr<const PrecisionPlan> plan = nullptr;  // For precisions that need one; see ChoosePrecision.
  // The packed weights of the model, for a delegate that packs weights; null: packed weights are not kept. The weights
  // that the reference kernels pack are kept in SessionOptions::packed instead.
  SharedPackedWeights packed = {};
  // True: no convolution is computed by Winograd's method, which has slightly greater errors.
  bool no_winograd = false;
  // Keeps what the delegate compiles for a device; null: nothing is kept.
  std::shared_ptr<DelegateBlobs> blobs = nullptr;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_
