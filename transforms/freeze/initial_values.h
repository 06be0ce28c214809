// What initialisers assign to variables.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_INITIAL_VALUES_H_
#define PERMAFROST_TRANSFORMS_FREEZE_INITIAL_VALUES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

class InitialValues {
 public:
  // What Assign and AssignVariableOp nodes give variables when the nodes named `initializers` run. Without an evaluator
  // (null) only constants are known. NotFound, with the nearest names, for a node that does not exist;
  // FailedPrecondition when a value is not known, or two are assigned to one variable. What initialises other things (a
  // table) has no effect on variables and is passed over.
  static absl::StatusOr<InitialValues> Of(const Graph& graph, const std::vector<std::string>& initializers,
                                          const Evaluator* evaluator);

  // By the name of the variable's node. Null when no initialiser assigns to it.
  const Tensor* Find(absl::string_view variable) const {
    const auto found = values_.find(variable);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  absl::flat_hash_map<std::string, Tensor> values_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_INITIAL_VALUES_H_
