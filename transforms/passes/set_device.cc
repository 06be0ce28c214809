// Places nodes on a device.
#include "absl/strings/match.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/op_selection.h"

namespace permafrost {
namespace {

struct Params {
  std::string device;
  bool if_default = false;
  std::vector<std::string> op_name;
  std::vector<std::string> prefix;
};

absl::StatusOr<int64_t> Set(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const NodeFilter filter, NodeFilter::Parse(params.op_name, params.prefix));
  filter.NoteAbsent(*graph, context);
  if (!params.device.empty() && !absl::StartsWith(params.device, "/")) {
    context->Note(absl::StrCat("TensorFlow does not read '", params.device,
                               "' as a device, expected a name such as '/device:CPU:0' or '/cpu:0'"));
  }
  int64_t changed = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->device() == params.device || !filter.Includes(*node)) continue;
    if (params.if_default && !node->device().empty()) {
      context->MissIfWanted(*node, "is on '", node->device(), "', and if_default is true");
      continue;
    }
    if (!context->AllowRewrite(*node)) continue;
    node->set_device(params.device);
    ++changed;
  }
  if (changed == 0) {
    context->NoteAbsent("no node was moved");
  } else if (params.device.empty()) {
    context->Note(absl::StrCat("took ", changed, " nodes off their device"));
  } else {
    context->Note(absl::StrCat("placed ", changed, " nodes on '", params.device, "'"));
  }
  return changed;
}

}  // namespace

// Places nodes on a device; without a device, clears their device.
//
//   MatMul(x, w) on ""   =>   MatMul(x, w) on "/device:GPU:0"
//
// With if_default=true, nodes that have a device are left unchanged. `_class`, which colocates nodes, is kept.
DEFINE_PASS(set_device) {
  return Pass<Params>("Places nodes on a device.")
      .Why("Determines where a model runs if the runtime should not decide.")
      .Param("device", &Params::device,
             "The device, such as \"/device:GPU:0\"; if absent, the runtime places the nodes.")
      .Param("if_default", &Params::if_default, "Restrict the pass to nodes without a device.")
      .Param("op_name", &Params::op_name, kOpNameHelp)
      .Param("prefix", &Params::prefix, kPrefixHelp)
      .Numerics(Exact())
      .Idempotent()
      .Run(Set);
}

}  // namespace permafrost
