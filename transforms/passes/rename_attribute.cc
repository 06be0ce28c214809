// Renames attributes.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/op_selection.h"

namespace permafrost {
namespace {

struct Params {
  std::string old_attribute_name;
  std::string new_attribute_name;
  std::vector<std::string> op_name;
  std::vector<std::string> prefix;
};

absl::StatusOr<int64_t> Rename(Graph* graph, const Params& params, PassContext* context) {
  const std::string& from = params.old_attribute_name;
  const std::string& to = params.new_attribute_name;
  if (from.empty() || to.empty()) return absl::InvalidArgumentError("the name of an attribute is not empty");
  PF_ASSIGN_OR_RETURN(const NodeFilter filter, NodeFilter::Parse(params.op_name, params.prefix));
  filter.NoteAbsent(*graph, context);
  if (from == to) {
    context->Note(absl::StrCat("the old and the new name are both '", from, "'"));
    return 0;
  }
  std::vector<Node*> nodes;
  absl::flat_hash_set<absl::string_view> found;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (!filter.Includes(*node)) continue;
    for (const Attr& attr : node->attrs()) found.insert(attr.key);
    if (!node->HasAttr(from)) continue;
    if (node->HasAttr(to)) {
      return absl::FailedPreconditionError(absl::StrCat(node->Describe(), ": has the attributes '", from, "' and '", to,
                                                        "'; remove one of the two with remove_attribute"));
    }
    nodes.push_back(node);
  }
  if (nodes.empty()) {
    std::vector<absl::string_view> names(found.begin(), found.end());
    std::sort(names.begin(), names.end());
    context->NoteAbsent(absl::StrCat("no node that is meant has the attribute '", from, "'", DidYouMean(from, names)));
    return 0;
  }
  int64_t renamed = 0;
  for (Node* node : nodes) {
    if (!context->AllowRewrite(*node)) continue;
    ++renamed;
    AttrValue value = *node->FindAttr(from);
    node->RemoveAttr(from);
    node->SetAttr(to, std::move(value));
  }
  context->Note(absl::StrCat("renamed '", from, "' of ", renamed, " nodes"));
  return renamed;
}

}  // namespace

// Renames an attribute of the nodes that have it; the value is kept.
//
//   Custom(x) {stride: 2}   =>   Custom(x) {strides: 2}
//
// If the op reads either name, the outputs may change. It is an error if a node already has an attribute with the new
// name.
DEFINE_PASS(rename_attribute) {
  return Pass<Params>("Renames an attribute of nodes.")
      .Why("Adapts a model to a runtime that uses another name for the attribute.")
      .Param("old_attribute_name", &Params::old_attribute_name, "Current name of the attribute.", Required())
      .Param("new_attribute_name", &Params::new_attribute_name, "New name of the attribute.", Required())
      .Param("op_name", &Params::op_name, kOpNameHelp)
      .Param("prefix", &Params::prefix, kPrefixHelp)
      .Numerics(Exact())
      .Idempotent()
      .MayInvalidate()
      .Run(Rename);
}

}  // namespace permafrost
