// Computes the values that initialisers assign to variables.
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
  // Returns the values that Assign and AssignVariableOp nodes give to variables when the nodes `initializers` run.
  // Without an evaluator (null) only constants are supported. Returns NotFound, with the nearest names, for a node that
  // does not exist; FailedPrecondition if a value is unknown, or a variable is assigned twice. Initialisers of other
  // objects, such as tables, are ignored.
  static absl::StatusOr<InitialValues> Of(const Graph& graph, const std::vector<std::string>& initializers,
                                          const Evaluator* evaluator);

  // Returns the value for the variable with that node name, or null if no initialiser assigns to it.
  const Tensor* Find(absl::string_view variable) const {
    const auto found = values_.find(variable);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  absl::flat_hash_map<std::string, Tensor> values_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_INITIAL_VALUES_H_
