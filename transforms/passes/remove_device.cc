// Removes the device placement of nodes.
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/op_selection.h"

namespace permafrost {
namespace {

struct Params {
  std::vector<std::string> op_name;
  std::vector<std::string> prefix;
};

absl::StatusOr<int64_t> Remove(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const NodeFilter filter, NodeFilter::Parse(params.op_name, params.prefix));
  filter.NoteAbsent(*graph, context);
  int64_t changed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->device().empty() || !filter.Includes(*node) || !context->AllowRewrite(*node)) continue;
    node->set_device("");
    ++changed;
  }
  if (changed == 0) {
    context->NoteAbsent("no node that is meant has a device");
  } else {
    context->Note(absl::StrCat("took ", changed, " nodes off their device"));
  }
  return changed;
}

}  // namespace

// Clears the devices of nodes, so that the machine that runs the graph places them.
//
//   MatMul(x, w) on "/job:worker/device:GPU:3"   =>   MatMul(x, w)
//
// `_class`, which colocates nodes, is kept.
DEFINE_PASS(remove_device) {
  return Pass<Params>("Clears the devices that nodes are placed on.")
      .Why("A model trained on several machines then runs on any single machine.")
      .Param("op_name", &Params::op_name, kOpNameHelp)
      .Param("prefix", &Params::prefix, kPrefixHelp)
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost
