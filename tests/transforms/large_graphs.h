// Builds large graphs in which nearly every pass finds work, for tests of the cost of passes.
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
  kChain,              // Each piece reads the previous one; all pieces share constants.
  kChainOwnConstants,  // A chain in which each piece has constants of its own, equal to those of the others.
  kFanOut,             // Every piece reads the single input; one NoOp waits for all, and all wait for another.
  kDuplicates,         // A fan-out in which each piece has constants of its own, and the NoOp waits for these as well.
  kCalls,              // A chain of calls, branches and loops, and a fan-out of them, over a library of functions.
};
inline constexpr LargeShape kLargeShapes[] = {LargeShape::kChain, LargeShape::kChainOwnConstants, LargeShape::kFanOut,
                                              LargeShape::kDuplicates, LargeShape::kCalls};
const char* Name(LargeShape shape);

// Returns a valid graph of about `num_nodes` nodes with declared inputs and outputs. The pieces alternate: activations,
// pass-through ops, arithmetic with neutral constants, pairs of transposes and reshapes, convolutions with foldable
// neighbours, fake-quantisation, tensor arrays, lookups.
absl::StatusOr<std::unique_ptr<Graph>> MakeLargeGraph(LargeShape shape, int num_nodes);

// Returns a call of every pass, with its required arguments, and of every preset. Returns NotFound for a pass with
// required arguments that are missing in the table of large_graphs.cc.
absl::StatusOr<std::vector<PassCall>> CallsOfEveryPass();

// Returns a context with a reader of the log that CallsOfEveryPass() names, with the ranges of `graph` in its current
// state. The caller adds an evaluator.
PassContext ContextOfEveryPass(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_TRANSFORMS_LARGE_GRAPHS_H_
