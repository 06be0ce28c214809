// The value that was saved for each variable of a graph.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_VARIABLE_VALUES_H_
#define PERMAFROST_TRANSFORMS_FREEZE_VARIABLE_VALUES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/variable_source.h"
#include "transforms/freeze/saved_names.h"

namespace permafrost {

// What a checkpoint of TensorFlow 2 appends to the path of a variable.
inline constexpr absl::string_view kVariableValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

struct VariableNaming {
  // What restores the variables; empty where no node does.
  SavedNames saved_names;
  // The checkpoint's own: keys by the full names of variables.
  absl::flat_hash_map<std::string, std::string> keys_by_full_name;
  // When not empty, the value saved under the name with this behind it is preferred: a moving average.
  std::string average_suffix;
};

class VariableValues {
 public:
  struct Value {
    Tensor tensor;
    std::string key;          // In the checkpoint.
    bool is_average = false;  // VariableNaming::average_suffix was found.
  };

  // All must outlive this. O(variables that were saved).
  VariableValues(const Graph& graph, const VariableSource& source, const VariableNaming& naming);

  // The value of a Variable, VariableV2 or VarHandleOp: as the graph restores it, or under its shared name or that of
  // the node, or, for a part "v/part_2" of a partitioned variable that was saved as one, cut out of it. NotFound, with
  // the nearest names, when nothing is saved for it; FailedPrecondition when type or shape are not those of the node.
  // `variable` need not be in the graph but for the other parts of its variable.
  absl::StatusOr<Value> Of(const Node& variable) const;

 private:
  bool Has(absl::string_view key) const { return saved_.contains(key); }
  absl::StatusOr<Value> Read(const Node& variable, const SavedName& name) const;
  bool FindPart(const Node& variable, absl::string_view name, SavedName* part) const;
  absl::Status Missing(const Node& variable, absl::string_view name) const;

  const Graph& graph_;
  const VariableSource& source_;
  const VariableNaming& naming_;
  absl::flat_hash_map<absl::string_view, const VariableInfo*> saved_;
};

// The name under which a variable is shared, or else that of its node.
std::string VariableName(const Node& variable);

// The elements that `slice` (see SavedName) names: a view where they lie one after the other. InvalidArgument for a
// text that is no slice of such a tensor.
absl::StatusOr<Tensor> Slice(const Tensor& whole, absl::string_view slice);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_VARIABLE_VALUES_H_
