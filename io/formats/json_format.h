// A graph as JSON, for programs to look at (docs/formats/json.md). Only written.
#ifndef PERMAFROST_IO_FORMATS_JSON_FORMAT_H_
#define PERMAFROST_IO_FORMATS_JSON_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

// Large constants as type, shape and range.
extern const ModelFormat kJsonFormat;
// With the bytes of every constant, in base64.
extern const ModelFormat kJsonWithWeightsFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_JSON_FORMAT_H_
