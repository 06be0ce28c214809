// Selects the inputs and outputs of a session of the C interface.
#ifndef PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_
#define PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "embedding/permafrost_runtime.h"
#include "graph/graph.h"
#include "runtime_check/session.h"

namespace permafrost {

struct SessionInterface {
  std::vector<std::string> inputs, outputs;
};

// Returns the names in the options; if there are none, those that the graph declares; otherwise those that
// FindInterface finds. Returns InvalidArgument, with the reason, if the choice is in doubt.
absl::StatusOr<SessionInterface> ChooseInterface(const Graph& graph, const pf_session_options& options);

// Returns types and shapes of outputs, for inputs as the graph declares them; unknown if they cannot be inferred.
std::vector<TensorSpec> DescribeOutputs(const Graph& graph, const std::vector<std::string>& names);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_
