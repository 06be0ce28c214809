// Depthwise convolutions of our own, where they are faster than oneDNN's.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {
namespace onednn {

// Whether a convolution of a source of that type can be computed so on this processor, and is faster.
bool IsOwnDepthwise(const ParsedNode& parsed, Element source);

// Writes storages of any type. Weights of eight bits for a source of eight bits, and floats otherwise: also for
// bfloat16, so that they lose nothing. Unimplemented for weights that are not finite, and for post-steps whose operands
// do not lie as the result does. Takes what it found out of the weights from `packed`, and leaves it there; null for
// nobody. REQUIRES: IsOwnDepthwise.
absl::StatusOr<std::unique_ptr<Piece>> MakeDepthwise(WeightedOp op, const StorageTypes& types, int num_threads,
                                                     PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_
