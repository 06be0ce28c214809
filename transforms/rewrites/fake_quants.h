// Fake-quantisation, which training leaves behind to say in which range a tensor is to be coded, as real quantisation.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// Moves each FakeQuantWithMinMaxVars with a constant range to the front of the ops before it that neither mix values
// nor change their order, so that it stands right behind the op whose result of 32 bits is to be coded.
//
//   FakeQuant f (Relu r (BiasAdd b))   =>   Relu f (FakeQuant f_hoisted (b))
//
// Stops at other ops, and at a node that somebody else reads. Misses also say which fake-quants the next function
// leaves alone. Returns how many it moved. O(nodes).
absl::StatusOr<int64_t> HoistFakeQuants(Graph* graph, PassContext* context);

//   FakeQuant f (x, min, max)   =>   Dequantize f of Requantize f_eightbit/requantize of QuantizeV2 f_eightbit/quantize
//
// Left alone with a range that is not constant, or empty, and with anything but eight bits in full. Returns how many it
// replaced. O(nodes).
absl::StatusOr<int64_t> FakeQuantsToRequantizes(Graph* graph, PassContext* context);

// Codes in the range from training what was coded in the range of the run before, which is then not needed.
//
//   Requantize(QuantizeV2(Dequantize(Requantize(x, RequantizationRange(x))), min, max), min, max)
//     =>   Requantize(x, min, max)
//
// Returns how many it shortened. What is no longer read stays for the caller to remove. O(nodes).
int64_t MergeAdjacentRequantizes(Graph* graph, PassContext* context);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FAKE_QUANTS_H_
