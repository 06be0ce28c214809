// Runs the plan of a function body or of a cluster, whose arguments and results are passed by reference.
#ifndef PERMAFROST_RUNTIME_CHECK_EXECUTION_PLAN_CALL_H_
#define PERMAFROST_RUNTIME_CHECK_EXECUTION_PLAN_CALL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"

namespace permafrost {

// Runs the plan and returns its fetches. A result may share memory with an argument, or with another result.
// InvalidArgument for a result on a branch that was not taken; other errors are those of ExecutePlan.
absl::StatusOr<std::vector<Passed>> CallPlan(Plan* plan, absl::Span<const Passed> arguments,
                                             const Environment& environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_EXECUTION_PLAN_CALL_H_
