// Convolutions, transposed convolutions and matrix products with very few output channels. Vectors across channels
// would be mostly empty, so these kernels vectorise other dimensions.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {

bool IsNarrow(const ParsedNode& parsed);

// Makes the piece for a narrow op. REQUIRES: IsNarrow, no post-steps.
std::unique_ptr<Piece> MakeNarrow(const WeightedOp& op, int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_
