// Flex operators: TensorFlow's ops in a TensorFlow Lite model, custom operators "Flex<Op>" that hold a NodeDef.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_FLEX_H_
#define PERMAFROST_IO_FORMATS_TFLITE_FLEX_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {

// The prefix of the names of such operators.
inline constexpr absl::string_view kFlexPrefix = "Flex";

// Returns the options of the operator that computes a node: a FlexBuffers vector of the op and the encoded NodeDef.
// Returns Unimplemented for nodes that a runtime with TensorFlow's kernels cannot run by themselves: inputs, control
// flow, nodes that call functions, and ops that TensorFlow does not have.
absl::StatusOr<std::string> FlexOptions(const Node& node);

// The row of the table for all Flex operators: they are imported as TensorFlow's op. Unimplemented for an op without a
// schema or a node that calls functions.
const OperatorRow& FlexRow();

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_FLEX_H_
