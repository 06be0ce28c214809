// Selects float constants to be stored in fewer bytes, and builds the nodes that replace them.
#include "transforms/rewrites/compact_constants.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "transforms/rewrites/float_constants.h"

namespace permafrost {
namespace {

// Maximum number of notes, so that they stay readable; --explain shows the others.
constexpr int64_t kMaxNotes = 20;

// Returns the op in `excluded` that reads the constant, directly or through one Identity; null if there is none.
const Node* ExcludedConsumer(const Node& node, const absl::flat_hash_set<absl::string_view>& excluded) {
  if (excluded.empty()) return nullptr;
  for (const Use& use : node.uses()) {
    if (excluded.contains(use.consumer->op().name())) return use.consumer;
    if (use.consumer->op() != ops::kIdentity) continue;
    for (const Use& read : use.consumer->uses()) {
      if (excluded.contains(read.consumer->op().name())) return read.consumer;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<Node*>> SelectConstants(Graph* graph, const CompactionFilter& filter, PassContext* context) {
  const absl::flat_hash_set<absl::string_view> excluded_nodes(filter.exclude_node.begin(), filter.exclude_node.end());
  const absl::flat_hash_set<absl::string_view> excluded_ops(filter.exclude_op.begin(), filter.exclude_op.end());
  const absl::flat_hash_set<absl::string_view> only_nodes(filter.only_node.begin(), filter.only_node.end());
  std::vector<Node*> selected;
  for (Node* node : graph->Nodes()) {
    PF_ASSIGN_OR_RETURN(const std::optional<int64_t> elements, FloatConstantSize(*node));
    if (!elements.has_value() || *elements < filter.minimum_size || *elements == 0 || IsQuantizationParameter(*node))
      continue;
    if (!only_nodes.empty() && !only_nodes.contains(node->name())) {
      context->MissIfWanted(*node, WayOut{"add it to only_node"}, "is not named by only_node");
      continue;
    }
    if (graph->IsInput(node)) {
      context->Miss(*node, NotMatched(NearMiss::Kind::kEndpoint, {node, 0}, "is a declared input"));
      continue;
    }
    if (excluded_nodes.contains(node->name())) {
      context->MissIfWanted(*node, WayOut{"leave it out of exclude_node"}, "is excluded by exclude_node");
      continue;
    }
    if (const Node* consumer = ExcludedConsumer(*node, excluded_ops); consumer != nullptr) {
      context->MissIfWanted(*node, "is read by ", consumer->Describe(), ", which exclude_op names");
      continue;
    }
    selected.push_back(node);
  }
  return selected;
}

bool IsQuantizationParameter(const Node& node) {
  bool is_parameter = false;
  for (const Use& use : node.uses()) {
    if (use.consumer->input(use.index).is_control()) continue;
    const Op op = use.consumer->op();
    const bool takes_parameters = op == ops::kDequantize || op == UniformQuantizeOp() || op == UniformDequantizeOp();
    if (!takes_parameters || (use.index != 1 && use.index != 2)) return false;
    is_parameter = true;
  }
  return is_parameter;
}

absl::StatusOr<Node*> AddCompanion(Graph* graph, Node* node, absl::string_view suffix, Tensor value) {
  PF_ASSIGN_OR_RETURN(Node * made,
                      graph->AddConst(graph->UniqueName(absl::StrCat(node->name(), suffix)), std::move(value), node));
  made->set_device(node->device());
  for (int i = 0; i < node->num_inputs(); ++i) graph->AddControlInput(made, node->input(i).node);
  return made;
}

void TurnInto(Graph* graph, Node* node, Op op, const std::vector<Node*>& inputs) {
  node->set_op(op);
  node->ClearAttrs();
  graph->ClearInputs(node);
  for (Node* input : inputs) graph->AddInput(node, {input, 0});
}

void ConstantNotes::Kept(const Node& node, absl::string_view why) {
  context_->MissIfWanted(node, why);
  if (++count_ <= kMaxNotes) context_->Note(absl::StrCat("kept '", node.name(), "' in float: ", why));
}

void ConstantNotes::Finish() {
  if (count_ <= kMaxNotes) return;
  context_->Note(absl::StrCat("kept ", count_ - kMaxNotes, " more constants in float, which --explain names"));
}

}  // namespace permafrost
