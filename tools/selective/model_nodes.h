// Visits all nodes of a model: those of the graph and those of its functions, as the file has them.
#ifndef PERMAFROST_TOOLS_SELECTIVE_MODEL_NODES_H_
#define PERMAFROST_TOOLS_SELECTIVE_MODEL_NODES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

// A node of the graph or of a function. Valid only during the visit.
struct ModelNode {
  absl::string_view name, op, device;
  absl::Span<const Attr> attrs;  // Attributes of a function's node may be placeholders for values from the caller.
  absl::string_view function;    // The function that contains the node; empty in the graph itself.
  bool is_call = false;          // The op is the name of a function in the model.
};

// Visits the graph in the order of the file, then each function of the library, called or not. DataLoss for a library
// that does not parse. O(bytes of the library + nodes).
absl::Status VisitNodes(const Graph& graph, absl::FunctionRef<absl::Status(const ModelNode&)> visit);

// Returns "node 'a'", or "node 'a' of function 'f'".
std::string Describe(const ModelNode& node);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SELECTIVE_MODEL_NODES_H_
