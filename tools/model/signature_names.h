// Names the inputs and outputs of a frozen graph by the keys of its signature.
#ifndef PERMAFROST_TOOLS_MODEL_SIGNATURE_NAMES_H_
#define PERMAFROST_TOOLS_MODEL_SIGNATURE_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "io/formats/saved_model.h"

namespace permafrost {

// Returns the key with each character replaced by '_' that TensorFlow does not allow in the name of a node.
std::string NodeNameOfKey(absl::string_view key);

// Renames the placeholders of `signature` by their keys, and adds an Identity named by its key for each output, unless
// the node of the output has that name and no other output. Another node that has the name takes the next free one. An
// output whose key is that of an input takes the next free name. Declares the interface anew, and puts the new names
// into `signature`. The inputs and outputs of `signature` must be those that `graph` declares, in the same order.
absl::Status NameBySignature(Graph* graph, Signature* signature);

// The same for outputs alone: keys[i] is the key of declared output i, or empty for one that keeps its name.
absl::Status NameOutputs(Graph* graph, absl::Span<const std::string> keys);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_SIGNATURE_NAMES_H_
