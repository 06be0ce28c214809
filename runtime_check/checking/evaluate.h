// Computes single nodes with the reference kernels: what constant folding uses.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_

#include <cstdint>
#include <vector>

#include "graph/evaluator.h"
#include "runtime_check/program/program.h"

namespace permafrost {

class KernelEvaluator : public Evaluator {
 public:
  // An evaluation that needs more than `memory_limit` bytes for outputs and scratch memory is refused with
  // ResourceExhausted.
  explicit KernelEvaluator(int64_t memory_limit = int64_t{1} << 30, KernelLookup kernel_lookup = &FindKernel)
      : memory_limit_(memory_limit), kernel_lookup_(std::move(kernel_lookup)) {}

  // Also refuses what is not a function of its inputs: Unimplemented for placeholders, random and stateful ops.
  absl::Status Supports(const Node& node) const override;
  // InvalidArgument also for inputs of the wrong number or types. Runs on the calling thread alone.
  absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) const override;

 private:
  int64_t memory_limit_;
  KernelLookup kernel_lookup_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
