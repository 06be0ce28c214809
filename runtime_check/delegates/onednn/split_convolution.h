// Float convolutions on the bfloat16 matrix units (AMX): precision bf16x3.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/weighted.h"

namespace permafrost {
namespace onednn {

// Returns true if a convolution can be computed this way and is large enough to be faster.
bool IsSplittable(const ParsedNode& parsed);

// Makes a convolution that reads and writes storages of any type. Products are within about 2^-16 of float products.
// The inputs of the partition must be finite. Returns Unimplemented for weights that are not finite, and for post-steps
// that need a separate pass.
// REQUIRES: IsSplittable, HasSplitProducts.
absl::StatusOr<std::unique_ptr<Piece>> MakeSplitConvolution(const WeightedOp& op, const StorageTypes& types,
                                                            int num_threads);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_SPLIT_CONVOLUTION_H_
