// Changes the op of nodes.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "graph/base/nearest.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {
  std::string old_op_name;
  std::string new_op_name;
};

bool IsOpName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '>' || c == '.';
  });
}

absl::StatusOr<int64_t> Rename(Graph* graph, const Params& params, PassContext* context) {
  if (!IsOpName(params.new_op_name)) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'new_op_name': found '", params.new_op_name,
                                                   "', expected letters, digits, '_', '.' and '>'"));
  }
  const Op from = Op::Named(params.old_op_name), to = Op::Named(params.new_op_name);
  if (from == to) {
    context->Note(absl::StrCat("the old and the new name are both '", from.name(), "'"));
    return 0;
  }
  std::vector<Node*> nodes;
  absl::flat_hash_set<Op> present;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    present.insert(node->op());
    if (node->op() == from) nodes.push_back(node);
  }
  if (nodes.empty()) {
    std::vector<absl::string_view> names;
    for (const Op op : present) names.push_back(op.name());
    std::sort(names.begin(), names.end());
    context->NoteAbsent(
        absl::StrCat("no node has the op '", params.old_op_name, "'", DidYouMean(params.old_op_name, names)));
    return 0;
  }
  int64_t renamed = 0;
  for (Node* node : nodes) {
    if (!context->AllowRewrite(*node)) continue;
    node->set_op(to);
    ++renamed;
  }
  context->Note(absl::StrCat("renamed the op of ", renamed, " nodes"));
  if (FindSchema(to) == nullptr) {
    context->Note(absl::StrCat("'", to.name(), "' is not in the table of ops: nothing is known of its inputs"));
  }
  return renamed;
}

}  // namespace

// Changes the op of all nodes that have a given op. Inputs and attributes are kept.
//
//   Mul(a, b)   =>   Multiply(a, b)
//
// It is an error if the new op is known and does not accept the inputs and attributes of such a node.
DEFINE_PASS(rename_op) {
  return Pass<Params>("Replaces one op by another in all nodes.")
      .Why("Substitutes an op with the same signature, such as a custom kernel or the name used by an older runtime.")
      .Param("old_op_name", &Params::old_op_name, "Current op.", Required())
      .Param("new_op_name", &Params::new_op_name, "New op.", Required())
      .Numerics(Changes("the outputs depend on the new op"))
      .Idempotent()
      .MayInvalidate()
      .Run(Rename);
}

}  // namespace permafrost
