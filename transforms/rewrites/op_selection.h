// Parameters that select ops and nodes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_OP_SELECTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_OP_SELECTION_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "transforms/pass.h"

namespace permafrost {

// A set of ops, from the values of a parameter: "A", "A|B" for several, "*" for all.
class OpSelection {
 public:
  // Parses the values. Returns InvalidArgument, with the name of the parameter, for an empty name.
  static absl::StatusOr<OpSelection> Parse(absl::string_view parameter, const std::vector<std::string>& values);

  bool Names(Op op) const { return ops_.contains(op); }
  bool takes_all() const { return takes_all_; }
  bool Includes(Op op) const { return takes_all_ || Names(op); }

  // Notes each selected op that no node has, with the nearest names.
  void NoteAbsent(const Graph& graph, PassContext* context) const;

 private:
  bool takes_all_ = false;
  absl::flat_hash_set<Op> ops_;
  std::vector<std::string> names_;
};

// Selects nodes by op and by name prefix. An empty list selects all.
class NodeFilter {
 public:
  // Parses `op_names` as OpSelection does. Returns InvalidArgument for an empty name.
  static absl::StatusOr<NodeFilter> Parse(const std::vector<std::string>& op_names,
                                          const std::vector<std::string>& prefixes);

  bool Includes(const Node& node) const;

  // Notes each op and each prefix that matches no node.
  void NoteAbsent(const Graph& graph, PassContext* context) const;

 private:
  OpSelection ops_;
  bool has_ops_ = false;
  std::vector<std::string> prefixes_;
};

// Help texts of the two parameters of a NodeFilter.
inline constexpr char kOpNameHelp[] =
    "Restrict the pass to nodes of these ops: \"A\", \"A|B\" for several, \"*\" for all.";
inline constexpr char kPrefixHelp[] = "Restrict the pass to nodes whose name starts with this prefix.";

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_OP_SELECTION_H_
