// Under which name, and as which part, the savers of a graph restore its variables.
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

// Looks at the graph once, in the constructor; the graph may change afterwards, as long as variables keep their nodes.
class SavedVariables {
 public:
  // Finds what each RestoreV2 reads, and the Assign or AssignVariableOp that takes it, directly or through Identity.
  // Savers whose names are not constant are passed over.
  explicit SavedVariables(const Graph& graph);

  // The value that a saver would restore to `variable`. Without a saver, what the checkpoint has under the name of the
  // variable: the shared_name of a VarHandleOp, or the name of the node. The errors of `source`, and InvalidArgument
  // for a part that does not fit.
  absl::StatusOr<Tensor> Read(const VariableSource& source, const Node& variable) const;

 private:
  struct SavedAs {
    std::string name;
    std::string slice;  // Empty for all of it.
  };

  void AddSaver(const Node& restore);

  absl::flat_hash_map<const Node*, SavedAs> saved_;
};

// The part of `whole` that `slice` says, in the form of the savers: the dimensions of the whole separated by blanks, a
// blank, and for each dimension "start,length" or "-" for all, joined by ":", as in "4 1 0,2:0,1".
absl::StatusOr<Tensor> TakeSlice(const Tensor& whole, absl::string_view slice);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_SAVED_VARIABLES_H_
