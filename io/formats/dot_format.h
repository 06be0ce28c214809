// A graph as a drawing: the DOT language of Graphviz (docs/formats/json.md). Only written.
#ifndef PERMAFROST_IO_FORMATS_DOT_FORMAT_H_
#define PERMAFROST_IO_FORMATS_DOT_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

extern const ModelFormat kDotFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_DOT_FORMAT_H_
