// Finds the checkpoint key and the slice from which the savers of a graph restore each variable.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_SAVED_VARIABLES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_SAVED_VARIABLES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/variable_source.h"

namespace permafrost {

// Maps variables to saved values. The graph is read only in the constructor; it may change afterwards, as long as
// variables keep their nodes.
class SavedVariables {
 public:
  // Finds the inputs of each RestoreV2, and the Assign or AssignVariableOp that reads it, directly or through Identity.
  // Skips savers whose names are not constant.
  explicit SavedVariables(const Graph& graph);

  // Returns the value that a saver would restore to `variable`. Without a saver, reads the checkpoint under the
  // variable's name: the shared_name of a VarHandleOp, or the name of the node. Returns the errors of `source`, and
  // InvalidArgument for a slice that does not fit.
  absl::StatusOr<Tensor> Read(const VariableSource& source, const Node& variable) const;

 private:
  struct SavedAs {
    std::string name;
    std::string slice;  // Empty for the whole tensor.
  };

  void AddSaver(const Node& restore);

  absl::flat_hash_map<const Node*, SavedAs> saved_;
};

// Returns the part of `whole` given by `slice` in the format of savers, such as "4 1 0,2:0,1": the dimensions of the
// whole separated by blanks, a blank, then for each dimension "start,length" or "-" for all, joined by ":".
absl::StatusOr<Tensor> TakeSlice(const Tensor& whole, absl::string_view slice);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_SAVED_VARIABLES_H_
