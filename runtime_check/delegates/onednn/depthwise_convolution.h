// The delegate's own depthwise convolutions, used where they are faster than oneDNN's.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {
namespace onednn {

// Returns true if the delegate's own kernel supports the convolution on this processor and is faster than oneDNN's.
bool IsOwnDepthwise(const ParsedNode& parsed, Element source);

// Makes a convolution that writes storages of any type. Weights have 8 bits for an 8-bit source and are floats
// otherwise, even for a bfloat16 source, to avoid rounding them. Returns Unimplemented for weights that are not finite,
// and for post-steps whose operands differ from the result in layout. Reads cached properties of the weights from
// `packed` and stores new ones there; null disables this cache. REQUIRES: IsOwnDepthwise.
absl::StatusOr<std::unique_ptr<Piece>> MakeDepthwise(WeightedOp op, const StorageTypes& types, int num_threads,
                                                     PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_DEPTHWISE_CONVOLUTION_H_
