// Writes a graph as a drawing in Graphviz's DOT language (docs/formats/json.md). Write-only.
#ifndef PERMAFROST_IO_FORMATS_DOT_FORMAT_H_
#define PERMAFROST_IO_FORMATS_DOT_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

extern const ModelFormat kDotFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_DOT_FORMAT_H_
