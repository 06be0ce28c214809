// Puts values in the place of variables: whatever read a variable through its handle or reference reads the value.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_
#define PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "transforms/freeze/function_twins.h"

namespace permafrost {

// What a tensor that was a handle of, or a reference to, a variable is from now on.
struct FrozenTensor {
  DType dtype = DType::kInvalid;
  Shape shape;           // Unknown rank where two meet that differ.
  std::string variable;  // For messages: one of those that it may be.
  bool is_handle = false;
};

// The value of a variable, or nothing for one that stays a variable.
using VariableLookup = std::function<absl::StatusOr<const Tensor*>(const Node& variable)>;

// Freezes the variables of a graph and of the functions that it calls.
//
//   ReadVariableOp(VarHandleOp w)   =>   Identity(Const w)
//
// A handle or reference is followed through Identity, V1 control flow, calls, branches and loops; a function that is
// given one gets a twin `<name>_frozen` whose argument is the value. ResourceGather(Nd) becomes GatherV2 (GatherNd),
// VariableShape becomes Shape, and whether a variable has a value is true. FailedPrecondition, with the node, for
// anything else that is done to a variable: a constant is not assigned to.
class ValueFlow {
 public:
  // Both must outlive this; `library` is that of the graph.
  ValueFlow(const VariableLookup& lookup, const FunctionLibrary& library)
      : lookup_(lookup), library_(library), new_functions_(library) {}

  // Once.
  absl::Status Freeze(Graph* graph);

  // Variables that became constants in bodies of functions, where their values are copies.
  int64_t num_in_functions() const { return num_in_functions_; }

 private:
  using Frozen = absl::flat_hash_map<TensorRef, FrozenTensor>;
  // What a function makes of arguments that are values.
  struct Twin {
    FunctionRef function;
    std::vector<std::pair<int, FrozenTensor>> outputs;  // That are values too, by index.
    bool is_changed = false;                            // Otherwise `function` is the original.
  };
  using FrozenArgs = std::vector<std::pair<int, FrozenTensor>>;
  class Pass;

  absl::StatusOr<const Twin*> TwinOf(const Node& caller, const FunctionRef& function, const FrozenArgs& args);
  absl::StatusOr<Twin> MakeTwin(const FunctionRef& function, const FrozenArgs& args);

  const VariableLookup& lookup_;
  const FunctionLibrary& library_;
  FunctionTwins new_functions_;
  absl::flat_hash_map<std::string, std::unique_ptr<Twin>>
      twins_;  // By function, its attributes, and what is known of its arguments.
  int depth_ = 0;
  bool functions_have_variables_ = false;
  int64_t num_in_functions_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_
