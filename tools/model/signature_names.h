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

// Returns the key with '_' in place of each character that TensorFlow does not allow in a node name.
std::string NodeNameOfKey(absl::string_view key);

// Renames the placeholders of `signature` to their keys, and adds an Identity named by its key for each output, unless
// the node of the output has that name and no other output. Another node with the name is renamed to the next free one.
// An output whose key is that of an input gets the next free name. Declares the interface again, and puts the new names
// into `signature`. The inputs and outputs of `signature` must be those that `graph` declares, in the same order.
absl::Status NameBySignature(Graph* graph, Signature* signature);

// Renames outputs only. keys[i] is the key of declared output i, or empty for an output that keeps its name.
absl::Status NameOutputs(Graph* graph, absl::Span<const std::string> keys);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_SIGNATURE_NAMES_H_
