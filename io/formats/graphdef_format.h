// GraphDef as formats of a model file: binary and text.
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_FORMAT_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

extern const ModelFormat kGraphDefFormat;
extern const ModelFormat kGraphDefTextFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_FORMAT_H_
