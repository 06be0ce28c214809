// Computes calls of functions, branches and loops whose inputs are known, node by node.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_EVALUATION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/evaluator.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "transforms/rewrites/call_inlining.h"

namespace permafrost {

class FunctionEvaluation {
 public:
  // All arguments must outlive this. `context` must have an evaluator. A body with an op in `exclude_ops` is rejected.
  FunctionEvaluation(const FunctionLibrary& library, const absl::flat_hash_set<absl::string_view>& exclude_ops,
                     PassContext* context)
      : inlining_(library, {}, context), exclude_ops_(exclude_ops), evaluator_(*context->evaluator) {}

  // Returns true for PartitionedCall, If, Case and While, stateful or stateless.
  static bool IsCall(const Node& node);

  // Returns the outputs of such a node. Any error is a reason to leave the node unchanged: the body has side effects,
  // random ops or V1 control flow; a node cannot be computed; the function does not exist; the step limit is exceeded.
  absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) {
    return Run(node, inputs, 0);
  }

 private:
  // The nodes of a body that its outputs depend on, in topological order.
  struct Schedule {
    const Graph* body = nullptr;
    std::vector<const Node*> order;
    std::vector<uint32_t> reads;  // By node id: number of inputs of these nodes that read it.
    absl::Status obstacle;
  };

  absl::StatusOr<std::vector<Tensor>> Run(const Node& node, absl::Span<const Tensor> inputs, int depth);
  absl::StatusOr<std::vector<Tensor>> RunLoop(const Node& node, absl::Span<const Tensor> inputs, int depth);
  absl::StatusOr<std::vector<Tensor>> RunFunction(const Node& node, const FunctionRef& function,
                                                  absl::Span<const Tensor> inputs, int depth);
  const Schedule& ScheduleOf(const CallInlining::Body& body);
  absl::Status MakeSchedule(const Graph& body, Schedule* schedule);

  CallInlining inlining_;
  const absl::flat_hash_set<absl::string_view>& exclude_ops_;
  const Evaluator& evaluator_;
  absl::flat_hash_map<const CallInlining::Body*, std::unique_ptr<Schedule>> schedules_;
  int64_t steps_ = 0;
};

// Returns true if If and While take the tensor for true: a nonzero number, a string that is not empty, or a non-scalar
// with elements.
bool MeansTrue(const Tensor& tensor);

// Returns the branch that a Case runs out of `count`: the last one if the index is out of range.
absl::StatusOr<size_t> ChosenBranch(const Tensor& index, size_t count);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FUNCTION_EVALUATION_H_
