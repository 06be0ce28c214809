// Runs the stages of fusion in order.
#include "runtime_check/delegates/onednn/fusion.h"

#include <utility>

#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/fusion_stages.h"

namespace permafrost {
namespace onednn {

absl::StatusOr<Fused> Fuse(const Partition& partition, const PrecisionPlan& plan, const FusionOptions& options,
                           const std::vector<bool>& is_beside) {
  PF_ASSIGN_OR_RETURN(ParsedPartition parsed, ParsePartition(partition, plan));
  Storages storages = FindStorages(parsed);
  StepGraph graph = MakeSteps(parsed, &storages);
  FusedPads pads = FusePads(storages, graph, &parsed);
  Chains chains = ChainSteps(parsed, storages, &graph);
  StepGroups groups = GroupSteps(storages, graph, chains);
  TypeAssignment types = AssignTypes(parsed, plan, graph, pads, chains, &storages);
  return MakePieces({std::move(parsed), std::move(storages), std::move(graph), std::move(pads), std::move(chains),
                     std::move(groups), std::move(types)},
                    options, is_beside);
}

}  // namespace onednn
}  // namespace permafrost
