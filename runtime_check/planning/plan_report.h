// A summary of an execution plan: memory, steps, and which nodes a delegate or a custom kernel computes.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_REPORT_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

// The nodes of a plan that a delegate computes, and those that the reference kernels compute, for --explain.
struct DelegationReport {
  struct Taken {
    std::string delegate;
    std::string function;             // The function that the nodes belong to; empty for the graph itself.
    std::vector<std::string> nodes;   // Names, in order.
    std::vector<std::string> pieces;  // CompiledPartition::Describe.
    int64_t constant_bytes = 0;
    int64_t scratch_bytes = 0;
  };
  struct Left {
    std::string node, op, reason;
    std::string function;  // As in Taken.
  };
  std::vector<Taken> partitions;
  std::vector<Left> left;  // Nodes that run with reference kernels, in execution order.
  // The reason that the plan does not use the requested delegate: a partition failed to run, or the plan exceeds the
  // memory limit with it. Empty otherwise.
  std::string failure;
};

// A node that a custom kernel computes, for --explain.
struct CustomNode {
  std::string node, op, kernel;  // Kernel::formula.
  std::string function;          // The function that the node belongs to; empty for the graph itself.
};

// A loop, and whether it runs as one plan for all iterations (program/fused_loop.h), for --explain.
struct LoopReport {
  std::string loop;
  std::string function;            // The function that the loop belongs to; empty for the graph itself.
  std::vector<std::string> steps;  // LoopPlan::Describe; empty if the loop has no plan.
  std::string reason;              // The reason that a run did not use the plan; empty otherwise.
};

struct PlanReport {
  int64_t arena_bytes = 0;     // Activations and scratch memory.
  int64_t constant_bytes = 0;  // Constants computed or aligned by the plan, without packed weights.
  int64_t num_steps = 0;       // Nodes that run in each inference.
  int64_t num_dynamic = 0;     // Steps that are prepared during the run.
  int64_t num_folded = 0;      // Nodes computed before the run.
  int num_lanes = 1;           // Maximum number of steps that run at the same time.
  int64_t num_stretches = 0;   // Groups of steps that may run at the same time (SessionOptions::inter_op_threads).
  int64_t num_beside = 0;      // Steps in these groups.
  DelegationReport delegation;
  std::vector<CustomNode> custom;  // Nodes with a custom kernel, if known before the run.
  std::vector<LoopReport> loops;   // Loops that ran, and frames that cannot be planned.

  // Adds the nodes of this report to `report`, which covers more: as nodes of `function`, and with `place` in front of
  // the failure.
  void AddTo(absl::string_view function, absl::string_view place, PlanReport* report) const;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_REPORT_H_
