// A precision plan as bytes that are read in no time, for what is made anew when it does not fit: packed weights.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_BYTES_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_BYTES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/model/precision_plan_file.h"

namespace permafrost {

// As docs/formats/packed_weights.md lays them out.
std::string PrecisionPlanBytes(const SavedPlan& saved);

// DataLoss for bytes that are damaged or cut short, InvalidArgument for those of another kind or version.
absl::StatusOr<SavedPlan> ParsePrecisionPlanBytes(absl::string_view bytes);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_BYTES_H_
