// Converts fake-quantisation, with which training records the range of a tensor, to real quantisation.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// Moves each FakeQuantWithMinMaxVars with a constant range up, across ops that neither combine nor reorder values. It
// then directly follows the op whose 32-bit result is to be quantised.
//
//   FakeQuant f (Relu r (BiasAdd b))   =>   Relu f (FakeQuant f_hoisted (b))
//
// Stops at other ops, and at a node with another reader. Misses include the fake-quants that the next function leaves
// unchanged. Returns the number of moved nodes. O(nodes).
absl::StatusOr<int64_t> HoistFakeQuants(Graph* graph, PassContext* context);

//   FakeQuant f (x, min, max)   =>   Dequantize f of Requantize f_eightbit/requantize of QuantizeV2 f_eightbit/quantize
//
// Replaces fake-quants as above. Leaves those unchanged whose range is empty or not constant, or that do not use the
// full eight bits. Returns the number of replaced nodes. O(nodes).
absl::StatusOr<int64_t> FakeQuantsToRequantizes(Graph* graph, PassContext* context);

// Merges a Requantize to a measured range with the following Requantize to a range from training, so that the measured
// range is not needed.
//
//   Requantize(QuantizeV2(Dequantize(Requantize(x, RequantizationRange(x))), min, max), min, max)
//     =>   Requantize(x, min, max)
//
// Returns the number of merged pairs. The caller removes the nodes that are no longer read. O(nodes).
int64_t MergeAdjacentRequantizes(Graph* graph, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_
