// Runs one step of a plan.
#ifndef PERMAFROST_RUNTIME_CHECK_EXECUTION_STEP_RUNNER_H_
#define PERMAFROST_RUNTIME_CHECK_EXECUTION_STEP_RUNNER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"

namespace permafrost {

class StepRunner {
 public:
  // All arguments must outlive the runner.
  StepRunner(Plan* plan, const Program& program, const Environment* environment)
      : plan_(*plan), program_(program), environment_(*environment) {}

  // Computes the step, then drops the heap memory of the tensors in `release`. A dynamic node is prepared first unless
  // its last preparation is still valid. Errors name the node.
  absl::Status Run(Step* step, absl::Span<const int> release);

 private:
  absl::Status RunDynamic(Step* step, absl::Span<const int> release);
  absl::Status Compute(const DynamicNode& dynamic, const NodeContext& context, absl::Span<const int> release);
  absl::Status Prepare(DynamicNode* dynamic, const NodeContext& context);
  absl::Status Call(const ProgramNode& node, const NodeContext& context);
  absl::Status RunCluster(const ProgramNode& node, const NodeContext& context);
  absl::Status TakeResults(const ProgramNode& node, std::vector<Passed> results);
  void Alias(const DynamicNode& dynamic, const NodeContext& context);

  Plan& plan_;
  const Program& program_;
  const Environment& environment_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_EXECUTION_STEP_RUNNER_H_
