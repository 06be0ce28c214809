// Merges the work of feeding nodes into the node that reads them.
#include "transforms/rewrites/absorption.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/matching/near_miss.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {

absl::Status Blocked(const Node& node, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(node.Describe(), " ", what));
}

absl::Status Blocked(const Node& node, absl::string_view what, const WayOut& way_out) {
  return NotMatched(absl::StrCat(node.Describe(), " ", what), way_out.text);
}

absl::Status BlockedByVariable(const Node& node, int index, absl::string_view what) {
  const std::string reason = absl::StrCat(node.Describe(), " ", what);
  if (index >= node.num_data_inputs()) return absl::FailedPreconditionError(reason);
  return NotMatched(NearMiss::Kind::kNotConstant, node.input(index), reason);
}

absl::Status BlockedByEndpoint(const Node& node) {
  return NotMatched(
      NearMiss::Kind::kEndpoint, {const_cast<Node*>(&node), 0},
      absl::StrCat(node.Describe(), " is a declared ", node.graph().IsOutput(&node) ? "output" : "input"));
}

absl::Status LimitReached() { return absl::CancelledError("the limit of rewrites is reached"); }

absl::Status RequireUnmarked(const Node& node) {
  return node.HasAttr(kRoundingAttr) ? Blocked(node, "ends a quantised operator") : absl::OkStatus();
}

absl::Status RequireUsedOnce(const Node& node) {
  PF_RETURN_IF_ERROR(RequireUnmarked(node));
  const TensorRef found = {const_cast<Node*>(&node), 0};
  if (node.graph().IsEndpoint(&node)) {
    return NotMatched(NearMiss::Kind::kEndpoint, found,
                      absl::StrCat(node.Describe(), " is a declared input or output"));
  }
  if (node.uses().size() == 1) return absl::OkStatus();
  return NotMatched(NearMiss::Kind::kShared, found,
                    absl::StrCat(node.Describe(), " has ", node.uses().size(), " users, expected one"));
}

bool MaySkip(const Node& node, const Node& inner, PassContext* context) {
  if (inner.graph().IsInput(&inner)) {
    context->Miss(node, BlockedByEndpoint(inner));
    return false;
  }
  if (const absl::Status unmarked = RequireUnmarked(inner); !unmarked.ok()) {
    context->Miss(node, unmarked);
    return false;
  }
  if (inner.num_inputs() == inner.num_data_inputs()) return true;
  context->MissIfWanted(node, WayOut{"run remove_control_dependencies first if that is not needed"}, "reads ",
                        inner.Describe(), ", which has control inputs");
  return false;
}

absl::StatusOr<bool> IsRewritten(const absl::Status& tried, const Node& node, PassContext* context) {
  if (tried.ok()) return true;
  if (absl::IsCancelled(tried)) return false;
  if (!absl::IsFailedPrecondition(tried)) return tried;
  context->Miss(node, tried);
  return false;
}

absl::StatusOr<int64_t> RewriteEach(Graph* graph, const std::vector<Node*>& heads, PassContext* context,
                                    absl::FunctionRef<absl::Status(Node* head, const ShapeMap* shapes)> rewrite) {
  if (heads.empty()) return 0;
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  if (!shapes.ok()) context->Note(absl::StrCat("without shapes, since ", shapes.status().message()));
  int64_t rewrites = 0;
  for (Node* head : heads) {
    const absl::Status tried = rewrite(head, shapes.ok() ? &*shapes : nullptr);
    PF_ASSIGN_OR_RETURN(const bool is_rewritten, IsRewritten(tried, *head, context));
    if (is_rewritten) ++rewrites;
  }
  if (rewrites > 0) DropDanglingColocations(graph);
  return rewrites;
}

absl::Status Absorb(Graph* graph, Node* node, absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed) {
  const std::vector<TensorRef> data(inputs.begin(),
                                    inputs.end());  // A copy: `inputs` may refer to inputs of removed nodes.
  // Control edges among the affected nodes, and from nodes that are data inputs, are redundant.
  absl::flat_hash_set<const Node*> waited_for(absorbed.begin(), absorbed.end());
  waited_for.insert(node);
  for (const TensorRef& input : data) waited_for.insert(input.node);
  std::vector<Node*> controls;
  std::vector<std::string> constants;  // By name: removing one may remove another.
  const auto gather = [&](const Node& from) {
    for (int i = 0; i < from.num_inputs(); ++i) {
      Node* producer = from.input(i).node;
      if (i >= from.num_data_inputs()) {
        if (waited_for.insert(producer).second) controls.push_back(producer);
      } else if (producer->op() == ops::kConst || producer->op() == ops::kIdentity) {
        constants.emplace_back(producer->name());
      }
    }
  };
  gather(*node);
  for (const Node* from : absorbed) gather(*from);
  graph->ClearInputs(node);
  for (const TensorRef& input : data) graph->AddInput(node, input);
  for (Node* producer : controls) graph->AddInput(node, {producer, kControlPort});
  for (Node* from : absorbed) {
    if (from->uses().empty() && !graph->IsEndpoint(from)) PF_RETURN_IF_ERROR(graph->RemoveNode(from));
  }
  for (const std::string& name : constants) {
    if (Node* constant = graph->Find(name); constant != nullptr) RemoveUnusedConstant(graph, constant);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
