// What the two halves of planning hand over: each tensor and node of a program, once all nodes are prepared.
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

namespace permafrost {

struct TensorState {
  enum class Kind : uint8_t {
    kUnset,
    kConstant,  // Value known before the run.
    kStatic,    // Shape known before the run.
    kDynamic,   // Nothing known before the run.
  };

  // Makes `aligned` from `value`, once.
  absl::Status Align(MemoryBudget* budget);
  // Of a constant that nobody will read.
  void DropMemory();

  Kind kind = Kind::kUnset;
  bool is_fetched = false;
  bool is_kept = false;                   // Of a constant: Compute of some node reads it.
  bool is_of_model = false;               // Of a constant: its value is the same for all input shapes.
  int readers_left = 0;                   // Inputs and fetches still to be prepared.
  Shape shape;                            // Unless dynamic.
  std::optional<Tensor> value;            // Of a constant.
  std::shared_ptr<const Tensor> aligned;  // Of a constant, once somebody asked for it.
  Reservation value_bytes, aligned_bytes;
};

struct NodeState {
  enum class Kind : uint8_t {
    kFolded,  // The outputs are constants: nothing runs, save that the node may be dead.
    kStatic,
    kDynamic,
    kFlow,  // Switch, Merge and the like: passes values on, as the frame executor does.
  };
  Kind kind = Kind::kFolded;
  // Of a dynamic node: null unless the input shapes are known. Of a candidate: not there yet.
  std::unique_ptr<PreparedNode> prepared;
  bool is_candidate = false;  // The delegate may take it.
  std::string refusal;        // Why not, where there is a delegate.
};

struct PlanState {
  std::vector<TensorState> tensors;
  std::vector<NodeState> nodes;
  int64_t num_folded = 0;
  DelegationReport delegation;
};

// Names the value of a constant that follows from the model alone; empty for any other tensor.
std::string ValueName(const Program& program, const PlanState& state, int tensor);

// What of the nodes is needed for the fetches and for effects. Nodes of control flow are not pure, so that what flows
// back to an earlier node is live too.
struct NodeLiveness {
  std::vector<bool> live;     // Runs.
  std::vector<bool> guarded;  // Folded, and it matters whether it is dead.
};
NodeLiveness FindLive(const Program& program, const PlanState& state);

// The second half: leaves out what nobody reads, assigns memory and builds the steps.
absl::StatusOr<std::unique_ptr<Plan>> LayOut(const Program& program, PlanState state, const Environment* environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLANNING_STATE_H_
