// State passed from node preparation to memory layout: each tensor and node of a program, after all nodes are prepared.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLANNING_STATE_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLANNING_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/program/program.h"
#include "runtime_check/resources/runtime_object.h"

namespace permafrost {

struct TensorState {
  enum class Kind : uint8_t {
    kUnset,
    kConstant,  // Value known before the run.
    kStatic,    // Shape known before the run.
    kDynamic,   // Nothing known before the run.
  };

  // Sets `aligned` to an aligned copy or view of `value`; later calls have no effect.
  absl::Status Align(MemoryBudget* budget);
  // Frees a constant that has no remaining readers.
  void DropMemory();

  Kind kind = Kind::kUnset;
  bool is_fetched = false;
  bool is_kept = false;                   // Constant that Compute of some node reads.
  bool is_of_model = false;               // Constant with the same value for all input shapes.
  int readers_left = 0;                   // Number of inputs and fetches that are not prepared yet.
  Shape shape;                            // Set unless the tensor is dynamic.
  std::optional<Tensor> value;            // Set for a constant.
  std::shared_ptr<const Tensor> aligned;  // Set for a constant on first use.
  Reservation value_bytes, aligned_bytes;
  // The reference to a variable, if the tensor is static and its elements are references. PlannedVariables owns it.
  std::vector<ObjectRef>* objects = nullptr;
};

struct NodeState {
  enum class Kind : uint8_t {
    kFolded,  // The outputs are constants. Nothing runs, but the node may be dead.
    kStatic,
    kDynamic,
    kFlow,  // Switch, Merge and the like, which the frame executor runs.
  };
  Kind kind = Kind::kFolded;
  // For a dynamic node, null unless the input shapes are known. For a candidate, null until it is prepared.
  std::unique_ptr<PreparedNode> prepared;
  bool is_candidate = false;  // The delegate supports the node.
  std::string refusal;        // The reason that it does not, if there is a delegate.
  // For several delegates (DelegateChoice): bit i is set if member i supports the node, and what it estimates.
  uint32_t supporters = 0;
  std::vector<double> estimated_ns;  // By member; negative if it does not know. Empty unless the node is a candidate.
};

struct PlanState {
  std::vector<TensorState> tensors;
  std::vector<NodeState> nodes;
  std::shared_ptr<PlannedVariables> variables;  // Null unless the program refers to variables.
  int64_t num_folded = 0;
  DelegationReport delegation;
};

// Returns the name of the value of a constant that depends on the model alone; empty for any other tensor.
std::string ValueName(const Program& program, const PlanState& state, int tensor);

// The nodes that fetches and side effects need. Nodes of control flow are not pure, so values that flow back to an
// earlier node are live too.
struct NodeLiveness {
  std::vector<bool> live;     // The node runs.
  std::vector<bool> guarded;  // The node is folded, and its dead state is needed.
};
NodeLiveness FindLive(const Program& program, const PlanState& state);

// Lays out a plan, the second half of planning: omits unused nodes, assigns memory and builds the steps.
absl::StatusOr<std::unique_ptr<Plan>> LayOut(const Program& program, PlanState state, const Environment* environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLANNING_STATE_H_
