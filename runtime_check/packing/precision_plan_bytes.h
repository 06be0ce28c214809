// A compact binary encoding of a precision plan, for data that is rebuilt when it does not match, such as packed
// weights.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_
#define PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

// A stored precision plan with the model, delegate and precision for which it was made.
struct PrecisionPlanRecord {
  std::string model;     // ModelFingerprint of the model; empty if the fingerprint is stored beside the plan.
  std::string delegate;  // Name of the delegate.
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;  // Null if the precision needs no plan.
};

// Encodes a plan, in the format of docs/formats/packed_weights.md.
std::string PrecisionPlanBytes(const PrecisionPlanRecord& record);

// Decodes a plan. DataLoss for bytes that are damaged or truncated, InvalidArgument for those of another kind or
// version.
absl::StatusOr<PrecisionPlanRecord> ParsePrecisionPlanBytes(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_
