// Maps variable names to the keys under which TensorFlow 2 checkpoints store them.
#ifndef PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_
#define PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/variable_source.h"

namespace permafrost {

// Returns the keys of the checkpoint by full variable name ("dense/kernel"), the name used in graphs. Omits ambiguous
// names. Returns an empty map for a checkpoint without objects, as written by TensorFlow 1, and DataLoss if the object
// graph is malformed.
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> KeysByFullName(const VariableSource& source);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_
