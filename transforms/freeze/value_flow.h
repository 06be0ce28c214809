// Replaces variables with values: nodes that read a variable through its handle or reference read the value instead.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_
#define PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/functions/function.h"
#include "graph/graph.h"
#include "transforms/freeze/function_twins.h"

namespace permafrost {

// The value that replaces a handle of, or a reference to, a variable.
struct FrozenTensor {
  DType dtype = DType::kInvalid;
  Shape shape;           // Unknown rank if two different shapes meet.
  std::string variable;  // For messages: one of the possible variables.
  bool is_handle = false;
};

// Returns the value of a variable, or null for one that is kept.
using VariableLookup = std::function<absl::StatusOr<const Tensor*>(const Node& variable)>;

// Freezes the variables of a graph and of the functions that it calls.
//
//   ReadVariableOp(VarHandleOp w)   =>   Identity(Const w)
//
// A handle or reference is followed through Identity, V1 control flow, calls, branches and loops. A function that takes
// one gets a copy `<name>_frozen` whose argument is the value. ResourceGather(Nd) becomes GatherV2 (GatherNd),
// VariableShape becomes Shape, and a test for initialisation becomes true. Returns FailedPrecondition, with the node,
// for any other use of a variable, since a constant cannot be assigned to. With `drops_assignments`, assignments become
// NoOps instead, and RngReadAndSkip only reads.
class ValueFlow {
 public:
  // Both arguments must outlive this; `library` is that of the graph.
  ValueFlow(const VariableLookup& lookup, const FunctionLibrary& library, bool drops_assignments = false)
      : lookup_(lookup), library_(library), drops_assignments_(drops_assignments), new_functions_(library) {}

  // Freezes the graph. To be called once.
  absl::Status Freeze(Graph* graph);

  // Returns the variables with a use that Freeze does not allow, and leaves the graph unchanged. If several variables
  // meet in one handle, one of them is returned. To be called instead of Freeze.
  absl::StatusOr<absl::btree_set<std::string>> ChangedVariables(Graph* graph);

  // Returns the number of variables that became constants in bodies of functions, where their values are copies.
  int64_t num_in_functions() const { return num_in_functions_; }

 private:
  using Frozen = absl::flat_hash_map<TensorRef, FrozenTensor>;
  // The frozen form of a function for a given set of arguments.
  struct Twin {
    FunctionRef function;
    std::vector<std::pair<int, FrozenTensor>> outputs;  // Outputs that are values as well, by index.
    bool is_changed = false;                            // If false, `function` is the original.
  };
  using FrozenArgs = std::vector<std::pair<int, FrozenTensor>>;
  class Pass;

  absl::StatusOr<const Twin*> TwinOf(const Node& caller, const FunctionRef& function, const FrozenArgs& args);
  absl::StatusOr<Twin> MakeTwin(const FunctionRef& function, const FrozenArgs& args);

  const VariableLookup& lookup_;
  const FunctionLibrary& library_;
  const bool drops_assignments_;
  absl::btree_set<std::string>* changed_ = nullptr;  // Set while ChangedVariables runs.
  FunctionTwins new_functions_;
  absl::flat_hash_map<std::string, std::unique_ptr<Twin>>
      twins_;  // By function, its attributes, and the known arguments.
  int depth_ = 0;
  bool functions_have_variables_ = false;
  int64_t num_in_functions_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_VALUE_FLOW_H_
