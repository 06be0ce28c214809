// Splits fused convolutions and matrix products into the ops that they combine.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Params {};

constexpr int kOperands = 2;  // Operands of the op itself; the fused ops read the others.

// Returns the base op of a fused op; an op without a name otherwise.
Op BaseOf(Op op) {
  if (op == ops::k_FusedConv2D) return ops::kConv2D;
  if (op == ops::k_FusedDepthwiseConv2dNative) return ops::kDepthwiseConv2dNative;
  if (op == ops::k_FusedMatMul) return ops::kMatMul;
  return Op();
}

// An op that can be fused: its name in fused_ops, the op, and its number of args.
struct Step {
  absl::string_view name;
  Op op;
  int num_args;
};
constexpr Step kSteps[] = {
    {"BiasAdd", ops::kBiasAdd, 1}, {"FusedBatchNorm", ops::kFusedBatchNormV3, 4},
    {"Relu", ops::kRelu, 0},       {"Relu6", ops::kRelu6, 0},
    {"Elu", ops::kElu, 0},         {"LeakyRelu", ops::kLeakyRelu, 0},
    {"Tanh", ops::kTanh, 0},       {"Sigmoid", ops::kSigmoid, 0},
};

const Step* StepOf(absl::string_view name) {
  for (const Step& step : kSteps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

// Returns the ops that follow the base op. Returns InvalidArgument, without the node's name, if the node cannot be
// split.
absl::StatusOr<std::vector<const Step*>> StepsOf(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, StringListAttr(node, "fused_ops"));
  std::vector<const Step*> steps;
  int num_args = 0;
  for (const std::string& name : names) {
    const Step* step = StepOf(name);
    if (step == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("fused_ops has '", name, "', which is not taken apart"));
    }
    steps.push_back(step);
    num_args += step->num_args;
  }
  if (node.num_data_inputs() != kOperands + num_args) {
    return absl::InvalidArgumentError(absl::StrCat("has ", node.num_data_inputs(), " inputs, expected ",
                                                   kOperands + num_args, " with fused_ops ",
                                                   absl::StrJoin(names, ",")));
  }
  if (const AttrValue* format = node.FindAttr("filter_format"); format != nullptr) {
    PF_ASSIGN_OR_RETURN(const absl::string_view text, format->AsString());
    if (text != "HWIO") {
      return absl::InvalidArgumentError(absl::StrCat("has the filter_format ", text, ", expected HWIO"));
    }
  }
  return steps;
}

// Returns true for attributes that only a fused op has.
bool IsOfFusion(const Node& node, absl::string_view key) {
  const OpSchema* fused = FindSchema(node.op());
  const OpSchema* base = FindSchema(BaseOf(node.op()));
  return fused->FindAttr(key) != nullptr && base->FindAttr(key) == nullptr;
}

// Attributes of a fused op that the split ops need.
struct FusedAttrs {
  explicit FusedAttrs(const Node& node, DType dtype) : type(AttrValue::Type(dtype)) {
    const auto read = [&](absl::string_view key, AttrValue* value) {
      if (const AttrValue* found = node.FindAttr(key); found != nullptr) *value = *found;
    };
    read("data_format", &data_format);
    read("epsilon", &epsilon);
    read("leakyrelu_alpha", &alpha);
    for (const Attr& attr : node.attrs()) {
      if (attr.key.substr(0, 1) == "_") notes.push_back(attr);
    }
  }

  void SetOn(Node* node) const {
    node->SetAttr("T", type);
    const bool is_batch_norm = node->op() == ops::kFusedBatchNormV3;
    if (is_batch_norm) {
      node->SetAttr("U", AttrValue::Type(DType::kFloat));
      node->SetAttr("epsilon", epsilon);
      node->SetAttr("is_training", AttrValue::Bool(false));
    }
    const bool is_by_channel = is_batch_norm || node->op() == ops::kBiasAdd;
    if (is_by_channel && data_format.kind() != AttrValue::Kind::kNone) node->SetAttr("data_format", data_format);
    if (node->op() == ops::kLeakyRelu) node->SetAttr("alpha", alpha);
  }

  AttrValue type;
  AttrValue data_format;
  AttrValue epsilon = AttrValue::Float(1e-4f), alpha = AttrValue::Float(0.2f);  // TensorFlow's defaults.
  std::vector<Attr> notes;  // Attributes that begin with "_"; they belong to the result.
};

// Adds the base convolution or matrix product.
absl::StatusOr<Node*> AddBase(Graph* graph, const Node& node, Node* position) {
  const Op op = BaseOf(node.op());
  PF_ASSIGN_OR_RETURN(Node * base,
                      graph->AddNode(graph->UniqueName(absl::StrCat(node.name(), "/", op.name())), op, position));
  base->set_device(node.device());
  for (const Attr& attr : node.attrs()) {
    if (!IsOfFusion(node, attr.key) && attr.key.substr(0, 1) != "_") base->SetAttr(attr.key, attr.value);
  }
  for (int i = 0; i < kOperands; ++i) graph->AddInput(base, node.input(i), node.input_spells_zero(i));
  for (int i = node.num_data_inputs(); i < node.num_inputs(); ++i) graph->AddControlInput(base, node.input(i).node);
  return base;
}

// The last step replaces the node, so that its name and users are kept.
absl::Status Split(Graph* graph, Node* node, const std::vector<const Step*>& steps, DType dtype) {
  const FusedAttrs attrs(*node, dtype);
  std::vector<TensorRef> args;
  for (int i = kOperands; i < node->num_data_inputs(); ++i) args.push_back(node->input(i));
  PF_ASSIGN_OR_RETURN(Node * before, AddBase(graph, *node, node));
  size_t next_arg = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    Node* current = node;
    if (i + 1 < steps.size()) {
      const std::string name = graph->UniqueName(absl::StrCat(node->name(), "/", steps[i]->name));
      PF_ASSIGN_OR_RETURN(current, graph->AddNode(name, steps[i]->op, node));
      current->set_device(node->device());
    } else {
      graph->ClearInputs(node);
      node->ClearAttrs();
      node->set_op(steps[i]->op);
    }
    graph->AddInput(current, {before, 0});
    for (int k = 0; k < steps[i]->num_args; ++k) graph->AddInput(current, args[next_arg++]);
    attrs.SetOn(current);
    before = current;
  }
  for (const Attr& note : attrs.notes) node->SetAttr(note.key, note.value);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Defuse(Graph* graph, const Params& /*params*/, PassContext* context) {
  int64_t rewrites = 0;
  for (Node* node : graph->Nodes()) {
    if (BaseOf(node->op()) == Op()) continue;
    const absl::StatusOr<DType> dtype = TypeAttr(*node, "T");
    const absl::StatusOr<std::vector<const Step*>> steps = StepsOf(*node);
    if (!dtype.ok() || !steps.ok()) {
      context->MissIfWanted(*node, (dtype.ok() ? steps.status() : dtype.status()).message());
      continue;
    }
    if (steps->empty()) {
      context->MissIfWanted(*node, "has nothing fused to it");
      continue;
    }
    const RewriteScope rewrite(context, graph, {node});
    if (!rewrite) continue;
    PF_RETURN_IF_ERROR(Split(graph, node, *steps, *dtype));
    ++rewrites;
  }
  if (rewrites > 0) context->Note(absl::StrCat("took ", rewrites, " fused ops apart"));
  return rewrites;
}

}  // namespace

// Splits a fused convolution or matrix product into the ops that it consists of.
//
//   _FusedConv2D y(x, w, b) with fused_ops BiasAdd, Relu   =>   Relu y(BiasAdd(Conv2D(x, w), b))
//
// Also handles _FusedMatMul and _FusedDepthwiseConv2dNative. The fused ops may be BiasAdd or FusedBatchNorm, followed
// by Relu, Relu6, Elu, LeakyRelu, Tanh or Sigmoid. Fused ops are internal to TensorFlow: some versions and most
// converters do not support them, and most other passes do not match them. This pass undoes fuse_activations.
//
// Leaves an op unchanged if it fuses other ops, has additional inputs, or has a filter_format other than HWIO.
DEFINE_PASS(defuse_ops) {
  return Pass<Params>("Splits fused convolutions and matrix products into plain ops.")
      .Why("Plain ops are supported by every version of TensorFlow, every converter and every other pass.")
      .LooksFor({ops::k_FusedConv2D, ops::k_FusedDepthwiseConv2dNative, ops::k_FusedMatMul})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Defuse);
}

}  // namespace permafrost
