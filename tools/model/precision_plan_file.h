// A precision plan as a file, so that it need not be looked for each time.
#ifndef PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_
#define PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "runtime_check/packing/precision_plan_bytes.h"

namespace permafrost {

// 16 hexadecimal digits over names, ops, inputs and the bytes of constants: the same for the same file at all times.
std::string ModelFingerprint(const Graph& graph);

// JSON, as docs/guide/delegates.md describes it.
std::string PrecisionPlanText(const SavedPlan& saved);

// InvalidArgument for what is no such file, is of another version, or has numbers that calibration never gives; the
// text says which member, what it is and what was expected.
absl::StatusOr<SavedPlan> ParsePrecisionPlan(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_PRECISION_PLAN_FILE_H_
