// Reads graph models of TensorFlow.js: a model.json and the shards of its weights (docs/formats/tfjs.md).
#ifndef PERMAFROST_IO_FORMATS_TFJS_H_
#define PERMAFROST_IO_FORMATS_TFJS_H_

#include <cstdint>

#include "io/model_format.h"

namespace permafrost {

// Read-only format. The graph declares the inputs and outputs of the model's signature, if any. Returns
// InvalidArgument, with the place, for text that is not JSON, a layers model, a malformed node, and a constant without
// a weight; other errors are those of the shards.
extern const ModelFormat kTfjsFormat;

// Longer files are rejected (InvalidArgument), because parsing takes many times their size in memory. The model.json of
// a network with 2,000 nodes has less than 1 MB.
inline constexpr uint64_t kMaxTfjsJsonBytes = uint64_t{64} << 20;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFJS_H_
