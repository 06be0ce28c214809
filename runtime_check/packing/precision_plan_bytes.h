// A precision plan as bytes that are read in no time, for what is made anew when it does not fit: packed weights.
#ifndef PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_
#define PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {

struct SavedPlan {
  std::string model;     // ModelFingerprint of the model that it is for; empty where that lies beside it.
  std::string delegate;  // Its name.
  std::string precision;
  std::shared_ptr<const PrecisionPlan> plan;  // Null where the precision wants none.
};

// As docs/formats/packed_weights.md lays them out.
std::string PrecisionPlanBytes(const SavedPlan& saved);

// DataLoss for bytes that are damaged or cut short, InvalidArgument for those of another kind or version.
absl::StatusOr<SavedPlan> ParsePrecisionPlanBytes(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PACKING_PRECISION_PLAN_BYTES_H_
