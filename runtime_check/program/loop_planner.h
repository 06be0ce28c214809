// Makes plans of fused loops.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLANNER_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLANNER_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/analysis/loop_form.h"
#include "graph/graph.h"
#include "runtime_check/kernel.h"
#include "runtime_check/program/loop_plan.h"

namespace permafrost {

// The matrices of constants that the plans of a loop have packed: by node and port, offset, steps, and shape.
using PackedLoopMatrices =
    std::map<std::tuple<const Node*, int, int64_t, int64_t, int64_t, int64_t>, std::shared_ptr<const FloatBuffer>>;

// The inputs of a plan.
struct LoopRequest {
  std::string name;
  const LoopForm* form = nullptr;
  const absl::flat_hash_map<const Node*, const Kernel*>* kernels = nullptr;
  std::vector<const Node*> constants;  // By variable: the Const that holds it, null for others.
  absl::Span<const Passed> arguments;  // Types, shapes, and the lists; values of constants.
  PackedLoopMatrices* packed = nullptr;
};

// Makes the plan. Returns Unimplemented, with the node and the reason, if the loop has a step that must run as usual.
absl::StatusOr<std::unique_ptr<LoopPlan>> MakeLoopPlan(const LoopRequest& request, const Environment& environment);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLANNER_H_
