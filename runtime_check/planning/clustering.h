// Forms clusters: finds the nodes whose shapes are known only during the run, groups them and makes each group one
// node.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTERING_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTERING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/planning/cluster.h"
#include "runtime_check/planning/planning_state.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Groups dynamic nodes of a prepared program into clusters. All nodes of a cluster are in one frame and dead under the
// same condition, only compute their outputs, and no other node lies on a path between two of them. Returns the program
// in which each cluster is one node, and replaces *state by its state; returns null, without changes, if there is no
// group that a delegate may be worth for. `program` must outlive the result. Time is linear in nodes and edges except
// for heaps.
absl::StatusOr<std::shared_ptr<ClusteredProgram>> FormClusters(const Program& program, PlanState* state);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_CLUSTERING_H_
