// Finds the checkpoint keys from which a graph's own nodes restore its variables.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_SAVED_NAMES_H_
#define PERMAFROST_TRANSFORMS_FREEZE_SAVED_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

struct SavedName {
  std::string key;    // Checkpoint key.
  std::string slice;  // Slice of the tensor, such as "20 3 0,10:0,3": the shape of the whole, then first,length for
                      // each dimension ("-" for all of it). Empty for the whole.
};

// Saved names by variable node (Variable, VariableV2, VarHandleOp).
using SavedNames = absl::flat_hash_map<std::string, SavedName>;

// Returns the inputs of Restore, RestoreSlice and RestoreV2 nodes whose results Assign and AssignVariableOp store in a
// variable, anywhere in the graph or in functions called by `restore_op` (may be empty). Other ways of restoring are
// ignored. Returns DataLoss or InvalidArgument for functions that cannot be read. O(graph + functions that restore_op
// calls).
absl::StatusOr<SavedNames> FindSavedNames(const Graph& graph, absl::string_view restore_op);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_SAVED_NAMES_H_
