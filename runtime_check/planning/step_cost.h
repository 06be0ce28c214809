// What a node is likely to take, for deciding which nodes run at the same time.
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

// Nanoseconds that a built-in kernel takes on one thread: by its products, and by the bytes of its data inputs and
// outputs, at the speed of a server of 2023. Good enough to say which of two nodes is the larger, and whether one is
// worth a thread.
double EstimateOnOneThread(const Node& node, absl::Span<const TypedShape> inputs, absl::Span<const TypedShape> outputs);

// The same on `num_threads` threads that share it, where that makes it faster.
double EstimateOnThreads(double one_thread_ns, int num_threads);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_STEP_COST_H_
