// Stores a precision plan in a file, so that later runs need not search for it again.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "runtime_check/packing/precision_plan_bytes.h"

namespace permafrost {

// Returns 16 hexadecimal digits that hash names, ops, inputs and the bytes of constants. The fingerprint of a file
// never changes.
std::string ModelFingerprint(const Graph& graph);

// Returns the plan as JSON, in the format of docs/guide/delegates.md.
std::string PrecisionPlanText(const PrecisionPlanRecord& record);

// Parses a plan. InvalidArgument for another format or version, or for numbers that calibration never produces; the
// message names the member, and gives found and expected.
absl::StatusOr<PrecisionPlanRecord> ParsePrecisionPlan(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_
