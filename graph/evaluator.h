// Interface for computing single nodes whose inputs are known. Passes use it to fold constants without depending on the
// runtime, which implements it (runtime_check/checking/evaluate.h).
#ifndef PERMAFROST_GRAPH_EVALUATOR_H_
#define PERMAFROST_GRAPH_EVALUATOR_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Returns OK if Evaluate can compute the node, otherwise the reason (Unimplemented: no kernel for the op or its
  // types).
  virtual absl::Status Supports(const Node& node) const = 0;

  // Computes the outputs of `node` from its data inputs, in port order. Errors name the node. Thread-safe.
  virtual absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) const = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_EVALUATOR_H_
