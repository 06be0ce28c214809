// What a session of the C interface feeds and fetches.
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

// The names that the options give, or else what the graph declares, or else what is found in it. InvalidArgument where
// that is in doubt: with the reason.
absl::StatusOr<SessionInterface> ChooseInterface(const Graph& graph, const pf_session_options& options);

// The types and shapes of outputs of a graph, for inputs as it declares them; unknown where the graph does not tell.
std::vector<TensorSpec> DescribeOutputs(const Graph& graph, const std::vector<std::string>& names);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_
