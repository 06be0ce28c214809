// Computes single nodes with the reference kernels, for constant folding.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_

#include <cstdint>
#include <vector>

#include "graph/evaluator.h"
#include "runtime_check/program/program.h"

namespace permafrost {

class KernelEvaluator : public Evaluator {
 public:
  // Evaluations that need more than `memory_limit` bytes for outputs and scratch memory fail with ResourceExhausted.
  explicit KernelEvaluator(int64_t memory_limit = int64_t{1} << 30, KernelLookup kernel_lookup = &FindKernel)
      : memory_limit_(memory_limit), kernel_lookup_(std::move(kernel_lookup)) {}

  // Returns OK if the node can be evaluated. Unimplemented also for nodes that are no function of their inputs:
  // placeholders, random and stateful ops.
  absl::Status Supports(const Node& node) const override;
  // Computes a node. InvalidArgument also for inputs of the wrong number or types. Runs only on the calling thread.
  absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) const override;

 private:
  int64_t memory_limit_;
  KernelLookup kernel_lookup_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
