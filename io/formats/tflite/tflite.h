// Reads TensorFlow Lite models (docs/formats/tflite.md) into TensorFlow's ops, and writes graphs of them.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_TFLITE_H_
#define PERMAFROST_IO_FORMATS_TFLITE_TFLITE_H_

#include "io/model_format.h"

namespace permafrost {

extern const ModelFormat kTfliteFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_TFLITE_H_
