// Implements the rewriting of TensorFlow.js ops, node by node.
#include "io/formats/tfjs_ops.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

constexpr absl::string_view kPrelu = "Prelu";
constexpr absl::string_view kFusedDepthwise = "FusedDepthwiseConv2dNative";

// Adds an elementwise node before `position`.
absl::StatusOr<Node*> Add(Graph* graph, const std::string& name, Op op, std::vector<TensorRef> inputs,
                          const AttrValue& type, Node* position) {
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(graph->UniqueName(name), op, position));
  for (const TensorRef& input : inputs) graph->AddInput(node, input);
  node->SetAttr("T", type);
  return node;
}

// Rewrites `node` to max(x, 0) - a * max(-x, 0). Keeps its control inputs.
absl::Status WritePrelu(Graph* graph, Node* node, TensorRef x, TensorRef a) {
  // TensorFlow.js omits the type, which is always float32 there.
  const AttrValue* known = node->FindAttr("T");
  const AttrValue type = known != nullptr ? *known : AttrValue::Type(DType::kFloat);
  const std::string base(node->name());
  PF_ASSIGN_OR_RETURN(Node * positive, Add(graph, base + "/positive", ops::kRelu, {x}, type, node));
  PF_ASSIGN_OR_RETURN(Node * negated, Add(graph, base + "/negated", ops::kNeg, {x}, type, node));
  PF_ASSIGN_OR_RETURN(Node * negative, Add(graph, base + "/negative", ops::kRelu, {{negated, 0}}, type, node));
  PF_ASSIGN_OR_RETURN(Node * scaled, Add(graph, base + "/scaled", ops::kMul, {a, {negative, 0}}, type, node));
  while (node->num_data_inputs() > 0) graph->RemoveInput(node, 0);
  graph->AddInput(node, {positive, 0});
  graph->AddInput(node, {scaled, 0});
  node->ClearAttrs();
  node->SetAttr("T", type);
  node->set_op(ops::kSub);
  return absl::OkStatus();
}

absl::Status WrongInputs(const Node& node, int expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(node.Describe(), ": has ", node.num_data_inputs(), " inputs, expected ", expected));
}

// Moves all but the last activation of `node` into a new node before it, so that `node` becomes a Prelu.
absl::StatusOr<Node*> SplitPrelu(Graph* graph, Node* node, std::vector<std::string> fused_ops) {
  constexpr int kLeastInputs = 3;  // Input, filter and slopes.
  const int last = node->num_data_inputs() - 1;
  if (last + 1 < kLeastInputs) return WrongInputs(*node, kLeastInputs);
  const TensorRef factors = node->input(last);
  fused_ops.pop_back();
  PF_ASSIGN_OR_RETURN(Node * fused,
                      graph->AddNode(graph->UniqueName(absl::StrCat(node->name(), "/fused")), node->op(), node));
  fused->CopyAttrs(*node);
  fused->set_device(node->device());
  for (int i = 0; i < last; ++i) graph->AddInput(fused, node->input(i));
  for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
    graph->AddControlInput(fused, node->input(i).node);
  }
  fused->SetAttr("fused_ops", AttrValue::StringList(fused_ops));
  fused->SetAttr("num_args", AttrValue::Int(last - 2));
  PF_RETURN_IF_ERROR(WritePrelu(graph, node, {fused, 0}, factors));
  return fused;
}

void CompleteFused(Node* node) {
  if (node->op() != ops::k_FusedConv2D || node->HasAttr("TArgs")) return;
  const AttrValue* type = node->FindAttr("T");
  const absl::StatusOr<DType> element = type != nullptr ? type->AsType() : DType::kFloat;
  const absl::StatusOr<int64_t> num_args = IntAttr(*node, "num_args");
  const int args = node->num_data_inputs() - 2;
  if (!element.ok() || !num_args.ok() || args < 0 || *num_args != args) return;
  node->SetAttr("TArgs", AttrValue::TypeList(std::vector<DType>(static_cast<size_t>(args), *element)));
}

}  // namespace

absl::Status SpellTfjsOps(Graph* graph) {
  const Op prelu = Op::Named(kPrelu), fused_depthwise = Op::Named(kFusedDepthwise);
  for (Node* node : graph->Nodes()) {
    if (node->op() == prelu) {
      if (node->num_data_inputs() != 2) return WrongInputs(*node, 2);
      PF_RETURN_IF_ERROR(WritePrelu(graph, node, node->input(0), node->input(1)));
      continue;
    }
    if (node->op() == fused_depthwise) {
      node->set_op(ops::k_FusedDepthwiseConv2dNative);
      // TensorFlow's op has no such attribute, and an empty list has no effect.
      const AttrValue* paddings = node->FindAttr("explicit_paddings");
      if (paddings != nullptr && paddings->AsIntList().ok() && paddings->AsIntList()->empty()) {
        node->RemoveAttr("explicit_paddings");
      }
    }
    const bool is_fused = node->op() == ops::k_FusedConv2D || node->op() == ops::k_FusedMatMul ||
                          node->op() == ops::k_FusedDepthwiseConv2dNative;
    if (!is_fused) continue;
    const absl::StatusOr<std::vector<std::string>> fused_ops = StringListAttr(*node, "fused_ops");
    if (fused_ops.ok() && !fused_ops->empty() && fused_ops->back() == kPrelu) {
      PF_ASSIGN_OR_RETURN(node, SplitPrelu(graph, node, *fused_ops));
    }
    CompleteFused(node);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
