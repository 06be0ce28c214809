// Chooses the delegate of each node, for sessions with several delegates.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_PLACEMENT_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_PLACEMENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime_check/delegate.h"
#include "runtime_check/planning/delegation.h"
#include "runtime_check/planning/planning_state.h"
#include "runtime_check/program/program.h"

namespace permafrost {

struct Placement {
  std::vector<int> owners;                        // By node: 0 for the built-in kernels, i + 1 for member i.
  std::vector<std::vector<double>> estimated_ns;  // By node and owner; infinite where the owner does not support it.
  double total_ns = 0;                            // Of a run, with entries and transfers.
  // Estimates of the same for each member alone, with the built-in kernels for the rest, and for these alone.
  std::vector<std::pair<std::string, double>> alone;
};

// Places the nodes of Runner::kDelegate, each on one of the members that support it (NodeState::supporters), or on the
// built-in kernels if the choice includes these, so that the estimated time of a run is the smallest. The estimate
// counts the work of each node by DelegateSpeed or EstimateNanoseconds, the entry of each partition, and the bytes that
// cross between host and device. A local minimum: a minimum cut decides for one owner at a time which nodes join it,
// until none is better. Of placements whose estimates differ by less than 5 %, the one that takes the first member
// wherever it can is preferred.
Placement PlaceNodes(const Program& program, const PlanState& state, const std::vector<Runner>& runners,
                     const DelegateChoice& choice, int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_PLACEMENT_H_
