// Graph models of TensorFlow.js: a model.json and the shards of its weights (docs/formats/tfjs.md).
#ifndef PERMAFROST_IO_FORMATS_TFJS_H_
#define PERMAFROST_IO_FORMATS_TFJS_H_

#include <cstdint>

#include "io/model_format.h"

namespace permafrost {

// Only read. The graph declares the inputs and outputs of the model's signature, if it has one. Errors besides those of
// the shards: InvalidArgument, for what is not JSON, a layers model, a node that is not well-formed or a constant
// without a weight, with the place.
extern const ModelFormat kTfjsFormat;

// A longer model.json is refused (InvalidArgument): parsing needs many times its size in memory. That of a network with
// 2,000 nodes has less than 1 MB.
inline constexpr uint64_t kMaxTfjsJsonBytes = uint64_t{64} << 20;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_H_
