// Computes single nodes with the reference kernels, for constant folding.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/evaluator.h"
#include "runtime_check/program/program.h"

namespace permafrost {

// Thread-safe.
class KernelEvaluator : public Evaluator {
 public:
  // Evaluations that need more than `memory_limit` bytes for outputs and scratch memory fail with ResourceExhausted.
  explicit KernelEvaluator(int64_t memory_limit = int64_t{1} << 30, KernelLookup kernel_lookup = &FindKernel)
      : memory_limit_(memory_limit), kernel_lookup_(std::move(kernel_lookup)) {}
  // Limits the time that all evaluations take together; they fail with Cancelled afterwards. Not limited by default.
  void LimitTime(double seconds) { most_ns_ = seconds * 1e9 < 9e18 ? static_cast<int64_t>(seconds * 1e9) : INT64_MAX; }
  // Returns whether an evaluation has failed for that reason, so that a caller can tell it from an op that has no
  // kernel.
  bool HasRunOutOfTime() const { return has_run_out_; }

  // Returns OK if the node can be evaluated. Unimplemented also for nodes that are no function of their inputs:
  // placeholders, random and stateful ops.
  absl::Status Supports(const Node& node) const override;
  // Computes a node. InvalidArgument also for inputs of the wrong number or types. Runs only on the calling thread.
  absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) const override;

 private:
  int64_t memory_limit_;
  KernelLookup kernel_lookup_;
  int64_t most_ns_ = INT64_MAX;
  mutable std::atomic<int64_t> spent_ns_{0};
  mutable std::atomic<bool> has_run_out_{false};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_EVALUATE_H_
