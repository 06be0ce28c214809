// Selects the inputs and outputs of a session of the C interface.
#ifndef PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_
#define PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "embedding/permafrost_runtime.h"
#include "embedding/session_choice.h"

namespace permafrost {

struct SessionInterface {
  std::vector<std::string> inputs, outputs;
};

// Returns names given by the caller. Returns InvalidArgument if one is NULL; `kind` is "input" or "output".
absl::StatusOr<std::vector<std::string>> GivenNames(const char* const* names, size_t count, absl::string_view kind);

// Returns the names in the options; if there are none, those that the graph declares; otherwise those that
// FindInterface finds. Returns InvalidArgument, with the reason, if the choice is in doubt.
absl::StatusOr<SessionInterface> ChooseInterface(const EmbeddedModel& graph, const pf_session_options& options);

// Returns types and shapes of outputs, for inputs as the graph declares them; unknown if they cannot be inferred.
std::vector<TensorSpec> DescribeOutputs(const EmbeddedModel& graph, const std::vector<std::string>& names);

}  // namespace permafrost

#endif  // PERMAFROST_EMBEDDING_SESSION_INTERFACE_H_
