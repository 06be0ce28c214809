// Large graphs in which nearly every pass finds work: for tests of what passes cost.
#ifndef PERMAFROST_TESTS_TRANSFORMS_LARGE_GRAPHS_H_
#define PERMAFROST_TESTS_TRANSFORMS_LARGE_GRAPHS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"
#include "transforms/pipeline/pipeline.h"

namespace permafrost {

enum class LargeShape {
  kChain,              // Each piece reads the one before it; constants are shared by all pieces.
  kChainOwnConstants,  // The same, and each piece has constants of its own: as many equal ones as pieces.
  kFanOut,             // Every piece reads the one input; one NoOp waits for all, and all wait for another.
  kDuplicates,         // The same, and each piece has constants of its own, for which the NoOp waits too.
  kCalls,              // A chain of calls, branches and loops, and a fan-out of them, over a library of functions.
};
inline constexpr LargeShape kLargeShapes[] = {LargeShape::kChain, LargeShape::kChainOwnConstants, LargeShape::kFanOut,
                                              LargeShape::kDuplicates, LargeShape::kCalls};
const char* Name(LargeShape shape);

// About `num_nodes` nodes with declared inputs and outputs; valid. The pieces take turns: activations, what passes
// values on, arithmetic with neutral constants, pairs of transposes and reshapes, convolutions with what passes fold
// into them, fake quantization, tensor arrays, lookups.
absl::StatusOr<std::unique_ptr<Graph>> MakeLargeGraph(LargeShape shape, int num_nodes);

// A call of every pass, with the arguments that it requires, and of every preset. NotFound for a pass that requires
// arguments which the table of large_graphs.cc does not have.
absl::StatusOr<std::vector<PassCall>> CallsOfEveryPass();

// What passes may ask for: a reader of the log that CallsOfEveryPass() names, with the ranges of `graph` as it is now.
// The caller adds an evaluator.
PassContext ContextOfEveryPass(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_LARGE_GRAPHS_H_
