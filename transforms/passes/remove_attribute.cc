// Removes attributes from nodes.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"
#include "transforms/rewrites/op_selection.h"

namespace permafrost {
namespace {

struct Params {
  std::vector<std::string> attribute_name;
  std::vector<std::string> op_name;
  std::vector<std::string> prefix;
};

// Notes that no selected node has the attribute, with the nearest existing names.
void NoteAbsent(const Graph& graph, const NodeFilter& filter, absl::string_view name, PassContext* context) {
  absl::flat_hash_set<absl::string_view> found;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!filter.Includes(*node)) continue;
    for (const Attr& attr : node->attrs()) found.insert(attr.key);
  }
  std::vector<absl::string_view> names(found.begin(), found.end());
  std::sort(names.begin(), names.end());
  context->NoteAbsent(absl::StrCat("no node that is meant has the attribute '", name, "'", DidYouMean(name, names)));
}

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const NodeFilter filter, NodeFilter::Parse(params.op_name, params.prefix));
  filter.NoteAbsent(*graph, context);
  for (const std::string& name : params.attribute_name) {
    if (name.empty()) return absl::InvalidArgumentError("parameter 'attribute_name' is empty, expected a name");
  }
  int64_t changed_nodes = 0;
  std::map<std::string, int64_t> removed, needed;
  std::vector<bool> changed(graph->id_limit(), false);
  for (const std::string& name : params.attribute_name) {
    for (Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (!filter.Includes(*node) || !node->HasAttr(name) || !context->AllowRewrite(*node)) continue;
      node->RemoveAttr(name);
      ++removed[name];
      if (!changed[node->id()]) ++changed_nodes;
      changed[node->id()] = true;
      const OpSchema* schema = FindSchema(node->op());
      const AttrSpec* spec = schema == nullptr ? nullptr : schema->FindAttr(name);
      if (spec != nullptr && !spec->has_default) ++needed[absl::StrCat("'", name, "' of ", node->op().name())];
    }
    if (removed.count(name) == 0) NoteAbsent(*graph, filter, name, context);
  }
  if (changed_nodes == 0) return 0;
  for (const auto& [name, count] : removed) context->Note(absl::StrCat("removed '", name, "' from ", count, " nodes"));
  if (!needed.empty()) {
    context->Note(absl::StrCat("TensorFlow does not load nodes without these, which have no default: ",
                               absl::StrJoin(needed, ", ", [](std::string* out, const auto& entry) {
                                 absl::StrAppend(out, entry.first, " (", entry.second, " nodes)");
                               })));
  }
  return changed_nodes;
}

}  // namespace

// Removes attributes from the nodes that have them.
//
//   MatMul(x, w) {T: float, _output_shapes: [...]}   =>   MatMul(x, w) {T: float}
//
// If the op has a default for the attribute, the default applies afterwards, which may change the outputs. Removing an
// attribute that a valid graph requires is an error. Removing one that TensorFlow requires to load the graph is
// reported in a note.
DEFINE_PASS(remove_attribute) {
  return Pass<Params>("Removes attributes from nodes.")
      .Why("Removes attributes that only training or a single tool needs, or that older readers reject.")
      .Param("attribute_name", &Params::attribute_name, "Name of the attribute.", Required())
      .Param("op_name", &Params::op_name, kOpNameHelp)
      .Param("prefix", &Params::prefix, kPrefixHelp)
      .Numerics(Exact())
      .Idempotent()
      .MayInvalidate()
      .Run(Remove);
}

}  // namespace permafrost
