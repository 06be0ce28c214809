// A plan: a program prepared for one set of input shapes. A run makes no decisions and allocates nothing, except for
// nodes whose shapes depend on values.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/base/selection.h"
#include "graph/tensor.h"
#include "runtime_check/planning/flow_instructions.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/planning/stretch.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/program.h"
#include "runtime_check/threads/thread_lane.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// A node that is prepared during the run, because its input shapes or the values that Prepare needs are unknown before.
struct DynamicNode {
  const ProgramNode* node = nullptr;
  // The last preparation is reused while the shapes, and the values that Prepare requested, are unchanged.
  bool is_prepared = false;
  PreparedNode prepared;
  std::vector<PrepareInput> inputs;
  std::vector<const Tensor*> constants;  // By input; null for an input that is not constant.
  std::vector<Tensor> granted;           // By input; of type kInvalid unless Prepare requested it.
  std::vector<int> release_after;        // Tensors whose heap memory has no reader after this node.
};

struct Step {
  ComputeFunction compute = nullptr;
  NodeContext context;
  DynamicNode* dynamic = nullptr;  // If set, compute is not used.
  ProfileTicket ticket;
};

// Steps that run at the same time. Builds without threads have none, and omit the code of the runner.
struct PlannedStretch {
  struct DeleteRunner {
    void operator()(StretchRunner* runner) const {
      if constexpr (kHasThreads) delete runner;
    }
  };

  Stretch steps;
  std::unique_ptr<StretchRunner, DeleteRunner> runner;
  std::vector<char*> scratch;  // By thread: the largest request of any step.
};

// Binds a fetched tensor to the caller's memory.
struct FetchBinding {
  // Values that point to the caller's memory, which the producer writes directly. Empty: the value is copied after the
  // run.
  std::vector<int> bound_values;
  std::optional<Tensor> constant;  // The result, if it is known before the run.
  bool is_dynamic = false;         // The shape is known only after the run.
};

// A program in which partitions are single nodes. It has no tensors for values inside partitions.
struct LoweredProgram {
  Program program;
  Graph nodes;                                   // The nodes that represent partitions.
  std::vector<std::unique_ptr<Kernel>> kernels;  // The kernels of `nodes`.
  absl::Status failure;                          // The error of a partition that failed to run.
};

struct ClusteredProgram;  // cluster.h
struct Variable;          // runtime_check/kernels/variable.h

// Whether this build has variables.
inline constexpr bool kHoldsVariables = selection::HoldsAnyOp({"VarHandleOp"});

// The shape of the value of a variable, on which a plan relies. No node of the plan changes it.
struct AssumedShape {
  std::shared_ptr<const Variable> variable;
  Shape shape;
};

// The variables that a plan looks up before the run.
struct PlannedVariables {
  std::vector<std::unique_ptr<std::vector<ObjectRef>>> references;  // The elements of handles.
  std::vector<AssumedShape> assumed;
};

// By fetch: memory of earlier results of calls, for results of later ones. Two, since a loop reads one and writes one.
using SpareResults = std::vector<std::array<std::shared_ptr<HeapOutput>, 2>>;

// The steps, values and memory of one program. Points into itself and into the program and environment, which must
// outlive it: neither copied nor moved.
class Plan {
 public:
  explicit Plan(const Program& program) : program_(program) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Returns the program that the steps run: the one that the plan was built for, or its lowered form with partitions.
  const Program& program() const { return program_; }
  // Returns the error of a partition or a cluster that failed to run; the plan is then unusable.
  absl::Status failure() const;
  bool HasFailed() const { return !failure().ok(); }
  // Returns whether the variables that the plan reads still have the shapes that it was made for.
  bool IsCurrent() const { return !kHoldsVariables || variables == nullptr || VariablesFit(); }

  std::vector<Value> values;  // By tensor.
  std::vector<Step> steps;
  std::vector<PlannedStretch> stretches;      // In order.
  std::vector<std::vector<int>> feed_values;  // By feed: the values that point to its memory.
  std::vector<FetchBinding> fetches;
  std::vector<std::shared_ptr<HeapOutput>> held;  // By tensor; empty when nothing is dynamic.
  std::vector<bool> is_overwritten;               // By tensor: its memory is reused during the run.
  std::unique_ptr<FlowInstructions> flow;         // Null without control flow.
  PlanReport report;

  // Owns the memory that values and steps point to.
  std::vector<Reservation> reservations;
  Tensor arena;
  std::vector<std::shared_ptr<const Tensor>> constants;
  std::vector<const Value*> step_inputs;
  std::vector<std::unique_ptr<KernelState>> states;
  std::vector<std::unique_ptr<DynamicNode>> dynamic_nodes;
  std::vector<std::unique_ptr<std::vector<std::string>>> strings;
  std::shared_ptr<const PlannedVariables> variables;  // Null unless the plan refers to variables.
  std::shared_ptr<SpareResults> spare_results;        // Null until the plan is called.
  std::unique_ptr<LoweredProgram> lowered;            // Null unless a delegate runs a part.
  std::shared_ptr<ClusteredProgram> clustered;  // Null unless the program has clusters; `lowered` is made from it.

 private:
  bool VariablesFit() const;

  const Program& program_;
};

// Selects whether Environment::delegate may run parts of the plan.
enum class Delegation : uint8_t { kAllowed, kNone };

// Prepares all nodes for these shapes of Program::feeds (fully known), and computes nodes whose inputs are known.
// Errors name the node; ResourceExhausted if the plan exceeds the budget.
absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const Program& program, absl::Span<const Shape> feed_shapes,
                                                const Environment* environment, Delegation delegation);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_
