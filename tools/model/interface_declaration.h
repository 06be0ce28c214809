// Declares the inputs and outputs of a graph as flags name them, or as they are found.
#ifndef PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_
#define PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/analysis/interface_finder.h"
#include "graph/graph.h"

namespace permafrost {

// Declares the graph's interface: the names given (comma separated), and where `inputs` or `outputs` is absent, those
// that the graph has declared already (a model's signature), or else those found. What was found, with the reasons,
// goes to *notes, one line each. InvalidArgument: a name that does not exist (with the nearest), or a doubt, with the
// candidates.
absl::Status DeclareOrFindInterface(const std::optional<std::string>& inputs, const std::optional<std::string>& outputs,
                                    Graph* graph, std::vector<std::string>* notes);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_
