// Between the two ways in which an output is named: by argument, in the body of a function, and by number.
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

// Neighbouring outputs of a node.
struct PortRange {
  int first = 0;
  int size = 0;
};

// Knows the outputs of the nodes of one graph. Remembers what it has worked out of a node, so that the graph's nodes
// must keep their attributes meanwhile.
class OutputNames {
 public:
  explicit OutputNames(const FunctionLibrary& library) : library_(library) {}

  // The outputs that `arg` of the node stands for. FailedPrecondition for an op that neither table nor library
  // knows, InvalidArgument for an argument that it does not have.
  absl::StatusOr<PortRange> Find(const Node& node, absl::string_view arg);
  // "arg:k" for output `port`. FailedPrecondition for an op that is not known, InvalidArgument for no such output.
  absl::StatusOr<std::string> NameOf(const Node& node, int port);

 private:
  const std::vector<ArgSpec>* OutputsOf(const Node& node) const;
  // Where each argument begins, and the end of the last.
  absl::StatusOr<const std::vector<int>*> StartsOf(const Node& node, const std::vector<ArgSpec>& args);
  int IndexOf(const std::vector<ArgSpec>& args, absl::string_view arg);

  const FunctionLibrary& library_;
  absl::flat_hash_map<const Node*, std::vector<int>> starts_;  // Of nodes whose arguments may be lists.
  absl::flat_hash_map<const std::vector<ArgSpec>*, absl::flat_hash_map<absl::string_view, int>> names_;
  int64_t num_starts_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_FUNCTIONS_FUNCTION_PORTS_H_
