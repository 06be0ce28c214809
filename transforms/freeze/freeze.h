// Freezing: a graph whose variables are constants.
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
  bool inline_calls = true;  // Put the bodies of called functions into the graph first.
  // Variables, by the names of their nodes: when not empty only these become constants, and never those.
  std::vector<std::string> only_variables;
  std::vector<std::string> except_variables;
  // Nodes that give variables their first values; what they assign takes the place of what was saved. The values must
  // not depend on anything that is fed.
  std::vector<std::string> initializers;
  // The node that fills the tables, and the files that they are filled from. See TableContents.
  std::string table_initializer;
  TableContents::AssetReader read_asset;
  const Evaluator* evaluator = nullptr;  // Computes such values. Null: only constants are taken.
};

struct FrozenVariable {
  std::string node;
  std::string key;  // In the checkpoint; empty for what an initialiser gave.
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;
  bool is_average = false;
};

struct FreezeReport {
  std::vector<FrozenVariable> variables;  // In the order of the graph.
  std::vector<std::string> notes;         // What the user should know, one line each: tables, variables that stay.
  size_t nodes_before = 0;
};

// Cuts the graph down to what its declared outputs need and turns the variables in it into constants, of which the
// values are those of `source`, uncopied; see ValueFlow for how what reads them changes. Nodes keep their names. Tables
// get nodes that fill them.
// FailedPrecondition: no outputs are declared; a variable is changed on the way to the outputs; its value does not fit.
// NotFound, with the nearest names: nothing was saved for a variable; an initialiser or a listed variable does not
// exist. The graph is of no use after an error.
absl::StatusOr<FreezeReport> Freeze(const VariableSource& source, const FreezeOptions& options, Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_FREEZE_H_
