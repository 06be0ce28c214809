// Translates between the two ways of naming an output: by argument, as in function bodies, and by port number.
#ifndef PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_PORTS_H_
#define PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_PORTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/functions/function.h"

namespace permafrost {

// A range of consecutive outputs of a node.
struct PortRange {
  int first = 0;
  int size = 0;
};

// Resolves outputs of the nodes of one graph. Caches results by node, so the attributes of the nodes must not change
// during its lifetime.
class OutputNames {
 public:
  explicit OutputNames(const FunctionLibrary& library) : library_(library) {}

  // Returns the outputs that belong to `arg` of the node. Returns FailedPrecondition if neither the op table nor the
  // library has the op, InvalidArgument if the op has no such argument.
  absl::StatusOr<PortRange> Find(const Node& node, absl::string_view arg);
  // Returns "arg:k" for output `port`. Returns FailedPrecondition for an unknown op, InvalidArgument if there is no
  // such output.
  absl::StatusOr<std::string> NameOf(const Node& node, int port);

 private:
  const std::vector<ArgSpec>* OutputsOf(const Node& node) const;
  // Returns the first output of each argument, followed by the total number of outputs.
  absl::StatusOr<const std::vector<int>*> StartsOf(const Node& node, const std::vector<ArgSpec>& args);
  int IndexOf(const std::vector<ArgSpec>& args, absl::string_view arg);

  const FunctionLibrary& library_;
  absl::flat_hash_map<const Node*, std::vector<int>> starts_;  // By node, for nodes whose arguments may be lists.
  absl::flat_hash_map<const std::vector<ArgSpec>*, absl::flat_hash_map<absl::string_view, int>> names_;
  int64_t num_starts_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_PORTS_H_
