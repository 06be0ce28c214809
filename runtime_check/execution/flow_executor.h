// Runs the instructions of a plan with control flow.
#ifndef PERMAFROST_RUNTIME_CHECK_EXECUTION_FLOW_EXECUTOR_H_
#define PERMAFROST_RUNTIME_CHECK_EXECUTION_FLOW_EXECUTOR_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Runs a step and drops the heap memory of the tensors in `release`.
using RunStepFunction = absl::FunctionRef<absl::Status(Step* step, absl::Span<const int> release)>;

// Runs a plan with control flow. Afterwards plan->flow records which tensors are dead. A loop runs until its condition
// is false. Returns Cancelled, at the end of an iteration, if the environment requests it. Memory does not grow with
// the number of iterations. REQUIRES: plan->flow.
absl::Status ExecuteFlow(Plan* plan, const Program& program, const Environment* environment, RunStepFunction run_step);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_EXECUTION_FLOW_EXECUTOR_H_
