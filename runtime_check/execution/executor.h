// Runs a plan.
#ifndef PERMAFROST_RUNTIME_CHECK_EXECUTION_EXECUTOR_H_
#define PERMAFROST_RUNTIME_CHECK_EXECUTION_EXECUTOR_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/profiling/callbacks.h"

namespace permafrost {

// Runs a plan. `feeds` are aligned values of the shapes that the plan was made for. `memory[i]` is 64-byte aligned
// memory of the right size for each fetch with bound values, and ignored for other fetches. Afterwards plan->values
// holds the results, and plan->flow records which of them are dead. Allocates nothing unless a node is dynamic. Not
// thread-safe.
absl::Status ExecutePlan(Plan* plan, absl::Span<const Value> feeds, absl::Span<char* const> memory,
                         const Environment* environment, const NodeCallback& on_node);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_EXECUTION_EXECUTOR_H_
