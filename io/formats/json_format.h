// Writes a graph as JSON for other programs (docs/formats/json.md). Write-only.
#ifndef PERMAFROST_IO_FORMATS_JSON_FORMAT_H_
#define PERMAFROST_IO_FORMATS_JSON_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

// Writes large constants as type, shape and range.
extern const ModelFormat kJsonFormat;
// Writes the bytes of every constant in base64.
extern const ModelFormat kJsonWithWeightsFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_JSON_FORMAT_H_
