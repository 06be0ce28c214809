// Finds the saved value of each variable of a graph.
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

// Suffix that a TensorFlow 2 checkpoint appends to the path of a variable.
inline constexpr absl::string_view kVariableValueSuffix = "/.ATTRIBUTES/VARIABLE_VALUE";

struct VariableNaming {
  // Keys that the graph restores; empty if no node restores variables.
  SavedNames saved_names;
  // Keys of the checkpoint by the full names of variables.
  absl::flat_hash_map<std::string, std::string> keys_by_full_name;
  // If not empty, a value saved under the variable's name with this suffix is preferred, such as a moving average.
  std::string average_suffix;
};

class VariableValues {
 public:
  struct Value {
    Tensor tensor;
    std::string key;          // Checkpoint key.
    bool is_average = false;  // True if VariableNaming::average_suffix was found.
  };

  // All arguments must outlive this. O(saved variables).
  VariableValues(const Graph& graph, const VariableSource& source, const VariableNaming& naming);

  // Returns the value of a Variable, VariableV2 or VarHandleOp under the key that the graph restores, its shared name
  // or its node name. A part "v/part_2" of a partitioned variable that was saved whole is cut out of it. Returns
  // NotFound, with the nearest names, if nothing is saved for it; FailedPrecondition if type or shape differ from the
  // node's. `variable` may be outside the graph, but the other parts of its variable must be in it.
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

// Returns the shared name of a variable, or its node name if it has none.
std::string VariableName(const Node& variable);

// Returns the elements selected by `slice` (see SavedName), as a view if they are contiguous. Returns InvalidArgument
// for text that is not a slice of such a tensor.
absl::StatusOr<Tensor> Slice(const Tensor& whole, absl::string_view slice);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_VARIABLE_VALUES_H_
