// Hands parts of a prepared program to a delegate: the partitioner.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/planning/planning_state.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// The node at `position` as a partition of its own, whose outputs are those that somebody reads. REQUIRES: its inputs
// are known, and its outputs' shapes; its readers are not prepared yet.
Partition PartitionOf(const Program& program, const PlanState& state, int position);

// Who runs a node.
enum class Runner : uint8_t {
  kNobody,  // Computed before the run, or not needed.
  kKernel,
  kDelegate,
  kFlow,  // By a kernel too, or as the frame executor does, after all others: it lies behind a branch or in a loop.
};

// Splits the nodes that run into as few groups as the order of the graph allows: by turns all nodes that are ready for
// their kernels, and all that are ready for the delegate. Returns the groups in the order in which they run, each a
// list of positions that ascend; the first, third and so on are for kernels, and only the first may be empty. Control
// inputs count as inputs. A node that nobody runs is in no group, and orders others by its control inputs alone. Nodes
// of Runner::kFlow end the last group for kernels, in the order of the program. Linear in nodes and edges but for a
// heap. REQUIRES: no other node depends on one of Runner::kFlow.
std::vector<std::vector<int>> GroupNodes(const Program& program, const std::vector<Runner>& runners);

struct Delegated {
  std::unique_ptr<LoweredProgram> lowered;
  PlanState state;  // Of the lowered program.
};

// Compiles what the delegate takes (NodeState::is_candidate). `prepare(position)` has to prepare a candidate for its
// reference kernel after all, since the delegate declined or failed. Null when no partition was formed; then all nodes
// that run are prepared for their reference kernels. ResourceExhausted when a partition does not fit the budget.
absl::StatusOr<std::unique_ptr<Delegated>> DelegatePartitions(const Program& program, PlanState* state,
                                                              const Delegate& delegate, const Environment& environment,
                                                              absl::FunctionRef<absl::Status(int position)> prepare);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_DELEGATION_H_
