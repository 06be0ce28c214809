// Declares the inputs and outputs of a graph, from flags or by detection.
#ifndef PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_
#define PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/analysis/interface_finder.h"
#include "graph/graph.h"

namespace permafrost {

// Declares the graph's interface from the given names (comma separated). If `inputs` or `outputs` is absent, uses those
// that the graph has declared already (a model's signature), or else detects them. Adds one line to *notes for each
// detected name, with the reason. InvalidArgument for a name that does not exist (with the nearest), or for an
// ambiguous interface, with the candidates.
absl::Status DeclareOrFindInterface(const std::optional<std::string>& inputs, const std::optional<std::string>& outputs,
                                    Graph* graph, std::vector<std::string>* notes);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_INTERFACE_DECLARATION_H_
