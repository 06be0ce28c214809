// Freezing: converts the variables of a graph to constants.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_FREEZE_H_
#define PERMAFROST_TRANSFORMS_FREEZE_FREEZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/variable_source.h"
#include "transforms/freeze/table_contents.h"
#include "transforms/freeze/variable_values.h"

namespace permafrost {

struct FreezeOptions {
  VariableNaming naming;
  bool clear_devices = true;
  bool inline_calls = true;  // Inline called functions first.
  // Freeze variables that the graph changes, too, and drop the assignments: all reads give the saved value.
  bool drop_assignments = false;
  // Names of variable nodes. If only_variables is not empty, only these become constants; excluded ones never do.
  std::vector<std::string> only_variables;
  std::vector<std::string> except_variables;
  // Nodes that initialise variables. Values that they assign override saved values and must not depend on anything that
  // is fed.
  std::vector<std::string> initializers;
  // The node that initialises the tables, and a reader of the files that hold their entries. See TableContents.
  std::string table_initializer;
  TableContents::AssetReader read_asset;
  const Evaluator* evaluator = nullptr;  // Computes initial values. Null: only constants are supported.
};

struct FrozenVariable {
  std::string node;
  std::string key;  // Checkpoint key; empty for a value from an initialiser.
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;
  bool is_average = false;
};

struct FreezeReport {
  std::vector<FrozenVariable> variables;  // In the order of the graph.
  std::vector<std::string> stateful;      // Names of variables that are kept, since the graph changes them.
  std::vector<std::string> notes;         // Messages for the user, one line each: tables, variables that were kept.
  size_t nodes_before = 0;
};

// Reduces the graph to the nodes that its declared outputs need, and converts their variables to constants with the
// values of `source`, which are not copied. ValueFlow describes the changes to their readers. Nodes keep their names.
// Adds nodes that fill the tables. Assignments to resource variables on which no output depends are dropped. Resource
// variables that are modified otherwise are kept, with an initialiser that assigns the saved value.
// Returns FailedPrecondition if no outputs are declared, a reference variable is modified on the way to the outputs, or
// the value of a variable does not fit. Returns NotFound, with the nearest names, if nothing was saved for a variable,
// or an initialiser or a listed variable does not exist. After an error the graph is unusable.
absl::StatusOr<FreezeReport> Freeze(const VariableSource& source, const FreezeOptions& options, Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_FREEZE_H_
