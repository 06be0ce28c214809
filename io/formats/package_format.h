// The memory-mapped package as a format of a model file.
#ifndef PERMAFROST_IO_FORMATS_PACKAGE_FORMAT_H_
#define PERMAFROST_IO_FORMATS_PACKAGE_FORMAT_H_

#include "io/model_format.h"

namespace permafrost {

// Reading returns the graph with the package's tensors as constants that view them. Writing uses the default
// PackageOptions. The extension is that of mozilla/DeepSpeech's releases; TensorFlow defines none.
extern const ModelFormat kPackageFormat;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_PACKAGE_FORMAT_H_
