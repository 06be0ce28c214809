// Parses selections of ops and nodes, and notes names that match nothing.
#include "transforms/rewrites/op_selection.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"

namespace permafrost {

absl::StatusOr<OpSelection> OpSelection::Parse(absl::string_view parameter, const std::vector<std::string>& values) {
  OpSelection selection;
  for (const std::string& value : values) {
    for (const absl::string_view name : absl::StrSplit(value, '|')) {
      if (name.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter, "': found '", value,
                                                       "', expected names of ops with | between them, or *"));
      }
      if (name == "*") {
        selection.takes_all_ = true;
      } else if (selection.ops_.insert(Op::Named(name)).second) {
        selection.names_.emplace_back(name);
      }
    }
  }
  return selection;
}

void OpSelection::NoteAbsent(const Graph& graph, PassContext* context) const {
  absl::flat_hash_set<Op> present;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) present.insert(node->op());
  std::vector<absl::string_view> present_names;
  for (const Op op : present) present_names.push_back(op.name());
  std::sort(present_names.begin(), present_names.end());
  for (const std::string& name : names_) {
    if (present.contains(Op::Named(name))) continue;
    context->NoteAbsent(absl::StrCat("no node has the op '", name, "'", DidYouMean(name, present_names)));
  }
}

absl::StatusOr<NodeFilter> NodeFilter::Parse(const std::vector<std::string>& op_names,
                                             const std::vector<std::string>& prefixes) {
  NodeFilter filter;
  PF_ASSIGN_OR_RETURN(filter.ops_, OpSelection::Parse("op_name", op_names));
  filter.has_ops_ = !op_names.empty();
  filter.prefixes_ = prefixes;
  return filter;
}

bool NodeFilter::Includes(const Node& node) const {
  if (has_ops_ && !ops_.Includes(node.op())) return false;
  if (prefixes_.empty()) return true;
  return std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](const std::string& prefix) { return absl::StartsWith(node.name(), prefix); });
}

void NodeFilter::NoteAbsent(const Graph& graph, PassContext* context) const {
  ops_.NoteAbsent(graph, context);
  for (const std::string& prefix : prefixes_) {
    bool fits = false;
    for (const Node* node = graph.first(); node != nullptr && !fits; node = node->next()) {
      fits = absl::StartsWith(node->name(), prefix);
    }
    if (!fits) context->NoteAbsent(absl::StrCat("no node has a name that begins with '", prefix, "'"));
  }
}

}  // namespace permafrost
