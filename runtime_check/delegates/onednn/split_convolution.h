// Convolutions of floats on matrix units of bfloat16: precision bf16x3.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {

// Whether a convolution can be computed so, and is large enough for it to be faster.
bool IsSplittable(const ParsedNode& parsed);

// Reads and writes storages of any type; products are within about 2^-16 of those of floats. The inputs of the
// partition must be finite. Unimplemented for weights that are not finite, and for post-steps that only a pass of their
// own can do. REQUIRES: IsSplittable, HasSplitProducts.
absl::StatusOr<std::unique_ptr<Piece>> MakeSplitConvolution(const WeightedOp& op, const StorageTypes& types,
                                                            int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_
