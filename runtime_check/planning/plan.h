// A program made ready for one set of input shapes: nothing is left to decide or to allocate, but for the nodes whose
// shapes depend on values.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/planning/flow_instructions.h"
#include "runtime_check/planning/plan_report.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/planning/stretch.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/program/program.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {

// A node that is prepared during the run, because its inputs' shapes or the values that Prepare needs are not known
// before.
struct DynamicNode {
  const ProgramNode* node = nullptr;
  // The last preparation serves again while the shapes, and the values that it asked for, stay the same.
  bool is_prepared = false;
  PreparedNode prepared;
  std::vector<PrepareInput> inputs;
  std::vector<const Tensor*> constants;  // By input; null where it is none.
  std::vector<Tensor> granted;           // By input; of no type where Prepare did not ask.
  std::vector<int> release_after;        // Tensors whose heap memory nobody reads after this node.
};

struct Step {
  ComputeFunction compute = nullptr;
  NodeContext context;
  DynamicNode* dynamic = nullptr;  // If set, compute is not used.
  ProfileTicket ticket;
};

// Steps that run at the same time.
struct PlannedStretch {
  Stretch steps;
  std::unique_ptr<StretchRunner> runner;
  std::vector<char*> scratch;  // By thread: as much as the greediest of the steps asks for.
};

// How a fetched tensor gets to the caller.
struct FetchBinding {
  // The producer writes into the caller's memory: the values to point there. Empty: copy from the value after the run.
  std::vector<int> bound_values;
  std::optional<Tensor> constant;  // The result, where it is known before the run.
  bool is_dynamic = false;         // The shape is known only after the run.
};

// A program in which partitions are single nodes. Tensors inside of partitions are gone.
struct LoweredProgram {
  Program program;
  Graph nodes;                                   // The nodes that stand for partitions.
  std::vector<std::unique_ptr<Kernel>> kernels;  // Theirs.
  absl::Status failure;                          // Of a partition that failed to run.
};

// Points into itself and into the program and environment, which must outlive it: neither copied nor moved.
class Plan {
 public:
  explicit Plan(const Program& program) : program_(program) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // What the steps run: the program that the plan was built for, or what a delegate left of it.
  const Program& program() const { return program_; }
  // A partition failed to run; then the plan is of no more use.
  bool HasFailed() const { return lowered != nullptr && !lowered->failure.ok(); }

  std::vector<Value> values;  // By tensor.
  std::vector<Step> steps;
  std::vector<PlannedStretch> stretches;      // In order.
  std::vector<std::vector<int>> feed_values;  // By feed: the values to point to its memory.
  std::vector<FetchBinding> fetches;
  std::vector<std::shared_ptr<HeapOutput>> held;  // By tensor; empty when nothing is dynamic.
  std::vector<bool> is_overwritten;               // By tensor: others will lie in its memory during the run.
  std::unique_ptr<FlowInstructions> flow;         // Null without control flow.
  PlanReport report;

  // Memory that values and steps point to.
  std::vector<Reservation> reservations;
  Tensor arena;
  std::vector<std::shared_ptr<const Tensor>> constants;
  std::vector<const Value*> step_inputs;
  std::vector<std::unique_ptr<KernelState>> states;
  std::vector<std::unique_ptr<DynamicNode>> dynamic_nodes;
  std::vector<std::unique_ptr<std::vector<std::string>>> strings;
  std::unique_ptr<LoweredProgram> lowered;  // Null unless a delegate took a part.

 private:
  const Program& program_;
};

// Whether Environment::delegate may take parts of the plan.
enum class Delegation : uint8_t { kAllowed, kNone };

// Prepares all nodes for these shapes of Program::feeds (fully known). Nodes whose inputs are known are computed here.
// Errors name the node; ResourceExhausted when the plan does not fit the budget.
absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const Program& program, absl::Span<const Shape> feed_shapes,
                                                const Environment* environment, Delegation delegation);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLAN_H_
