// How a delegate is made.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_

#include <memory>
#include <string>

#include "runtime_check/packing/packed_weights.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

// The name of the built-in kernels where a delegate is named.
inline constexpr char kReferenceDelegate[] = "reference";

struct DelegateOptions {
  std::string precision = "f32";
  std::shared_ptr<const PrecisionPlan> plan = nullptr;  // For precisions that want one; see ChoosePrecision.
  // Of the model that the delegate is for, by a delegate that packs weights; null: nobody keeps them. A session has its
  // own (SessionOptions::packed) for what the reference kernels pack.
  SharedPackedWeights packed = {};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_DELEGATE_OPTIONS_H_
