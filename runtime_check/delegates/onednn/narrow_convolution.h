// Convolutions, plain and transposed, and products of matrices, with so few output channels that vectors across
// channels would be empty for the most part.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {

bool IsNarrow(const ParsedNode& parsed);

// REQUIRES: IsNarrow, no post-steps.
std::unique_ptr<Piece> MakeNarrow(const WeightedOp& op, int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_NARROW_CONVOLUTION_H_
