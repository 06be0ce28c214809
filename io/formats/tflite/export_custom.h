// Writes custom operators with kernels in runtimes of TensorFlow Lite.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_EXPORT_CUSTOM_H_
#define PERMAFROST_IO_FORMATS_TFLITE_EXPORT_CUSTOM_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// True for an op that is a custom operator of the same name, with the same operands and results.
bool IsCustomOperator(Op op);

// Returns the options of the operator, made from the attributes of the node. Errors: those of the attributes.
// REQUIRES: IsCustomOperator(node.op()).
absl::StatusOr<std::string> CustomOptions(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_EXPORT_CUSTOM_H_
