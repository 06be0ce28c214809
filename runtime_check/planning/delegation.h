// The partitioner, which moves parts of a prepared program to a delegate.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime_check/delegate.h"
#include "runtime_check/planning/planning_state.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// The start of DelegationReport::Left::reason for nodes that the delegate took and then failed to compile.
inline constexpr absl::string_view kFailedToCompile = "the delegate failed to compile its partition";

// Returns the node at `position` as a partition of its own, whose outputs are those that have readers. REQUIRES: its
// inputs and its outputs' shapes are known, and its readers are not prepared yet.
Partition PartitionOf(const Program& program, const PlanState& state, int position);

// Selects what runs a node.
enum class Runner : uint8_t {
  kNone,  // Computed before the run, or not needed.
  kKernel,
  kDelegate,
  kFlow,  // A kernel or the frame executor, after all other nodes: the node is behind a branch or in a loop.
};

// Splits the nodes that run into as few groups as the order of the graph allows. Groups alternate between all nodes
// that are ready for their kernels and all nodes that are ready for the delegate. Returns the groups in execution
// order, each a list of ascending positions; the first, third and so on are for kernels, and only the first may be
// empty. Control inputs count as inputs. A node of Runner::kNone is in no group, and orders other nodes only by its
// control inputs. Nodes of Runner::kFlow end the last group for kernels, in the order of the program. Linear in nodes
// and edges except for a heap. REQUIRES: no other node depends on a node of Runner::kFlow.
std::vector<std::vector<int>> GroupNodes(const Program& program, const std::vector<Runner>& runners);

// Nodes that run one after the other.
struct NodeGroup {
  int owner = 0;               // 0: kernels; i + 1: delegate i.
  std::vector<int> positions;  // Ascending.
};

// As GroupNodes for several delegates: `owners[i]` is the owner of a node of Runner::kDelegate. After a group comes one
// of the owner with the most nodes that are ready. The first group is for kernels, and may be empty.
std::vector<NodeGroup> GroupByOwner(const Program& program, const std::vector<Runner>& runners,
                                    const std::vector<int>& owners);

struct Delegated {
  std::unique_ptr<LoweredProgram> lowered;
  PlanState state;  // State of the lowered program.
};

// Compiles the nodes that the delegate supports (NodeState::is_candidate); of several delegates, the one where
// PlaceNodes puts the node, and if it fails, another one. `prepare(position)` prepares a candidate for
// its reference kernel, after the delegate declined or failed. Returns null if no partition was formed; then all nodes
// that run are prepared for their reference kernels. ResourceExhausted if a partition exceeds the budget.
absl::StatusOr<std::unique_ptr<Delegated>> DelegatePartitions(const Program& program, PlanState* state,
                                                              const Delegate& delegate, const Environment& environment,
                                                              absl::FunctionRef<absl::Status(int position)> prepare);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_
