// Renames a node.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

struct Params {
  std::string old_node_name;
  std::string new_node_name;
};

// Returns true for a valid node name in TensorFlow: letters, digits and "_.\-/>", not starting with one of "/\->".
bool IsNodeName(absl::string_view name) {
  constexpr absl::string_view kOther = "_.\\-/>";
  constexpr absl::string_view kNeverFirst = "\\-/>";
  return !name.empty() && !absl::StrContains(kNeverFirst, name.substr(0, 1)) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return absl::ascii_isalnum(c) || absl::StrContains(kOther, c); });
}

absl::StatusOr<int64_t> Rename(Graph* graph, const Params& params, PassContext* context) {
  const std::string& from = params.old_node_name;
  const std::string& to = params.new_node_name;
  if (!IsNodeName(to)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter 'new_node_name': found '", to,
        "', expected letters, digits, '_', '.', '/', '-', '>' and '\\', the first no sign but '_' or '.'"));
  }
  Node* node = graph->Find(from);
  if (node == nullptr) {
    std::vector<absl::string_view> names;
    for (const Node* other = graph->first(); other != nullptr; other = other->next()) names.push_back(other->name());
    context->NoteAbsent(absl::StrCat("there is no node '", from, "'", DidYouMean(from, names)));
    return 0;
  }
  if (from == to) {
    context->Note(absl::StrCat("the old and the new name are both '", from, "'"));
    return 0;
  }
  if (const Node* other = graph->Find(to); other != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(node->Describe(), " cannot be renamed to '", to, "', which is the name of ", other->Describe()));
  }
  if (!context->AllowRewrite(*node)) return 0;
  PF_RETURN_IF_ERROR(graph->Rename(node, to));
  RelocateColocations(graph, [&](absl::string_view name) { return name == from ? absl::string_view(to) : name; });
  if (graph->IsEndpoint(node)) {
    context->Note(absl::StrCat("the declared ", graph->IsInput(node) ? "input" : "output", " '", from, "' is '", to,
                               "' from now on"));
  }
  return 1;
}

}  // namespace

// Renames a node. Inputs that read it, entries of `_class`, and declared inputs and outputs are updated.
//
//   Add(splitter, splitter:1)   =>   Add(demux, demux:1)
//
// It is an error if another node has the new name. Names in constants, function bodies and other attributes are left
// unchanged.
DEFINE_PASS(rename_node) {
  return Pass<Params>("Renames a node.")
      .Why("Gives inputs and outputs the names that an application expects.")
      .Param("old_node_name", &Params::old_node_name, "Current name of the node.", Required())
      .Param("new_node_name", &Params::new_node_name, "New name of the node.", Required())
      .Numerics(Exact())
      .Idempotent()
      .ChangesInterface("a renamed input or output has its new name")
      .Run(Rename);
}

}  // namespace permafrost
