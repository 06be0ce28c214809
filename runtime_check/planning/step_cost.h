// Estimates of the run time of nodes, for choosing nodes that run at the same time.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_STEP_COST_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_STEP_COST_H_

#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

struct TypedShape {
  DType dtype = DType::kInvalid;
  Shape shape;  // Fully known.
};

// The work of a node, in which its time is estimated.
struct StepWork {
  double flops = 0;  // Additions and multiplications of convolutions and matrix products, of codes, too.
  double bytes = 0;  // Bytes of data inputs and outputs.
};

StepWork WorkOf(const Node& node, absl::Span<const TypedShape> inputs, absl::Span<const TypedShape> outputs);

// Returns the estimated nanoseconds of a built-in kernel on one thread, from its number of products and the bytes of
// its data inputs and outputs, at the speed of a server of 2023. Accurate enough to compare two nodes, and to decide
// whether a node is worth a thread.
double EstimateOnOneThread(const Node& node, absl::Span<const TypedShape> inputs, absl::Span<const TypedShape> outputs);

// Returns the estimate for `num_threads` threads that share the node, if that is faster than one.
double EstimateOnThreads(double one_thread_ns, int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_STEP_COST_H_
