// The objects that a checkpoint of TensorFlow 2 saves variables under.
#ifndef PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_
#define PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/variable_source.h"

namespace permafrost {

// Keys of the checkpoint by the full names of variables ("dense/kernel"), which graphs know them by. Names that several
// variables have are left out; nothing for a checkpoint without objects, as TensorFlow 1 writes it. DataLoss when what
// it says of its objects is malformed.
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> KeysByFullName(const VariableSource& source);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_OBJECT_GRAPH_H_
