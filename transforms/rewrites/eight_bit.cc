// Adds the nodes that quantise float tensors to eight bits and dequantise them.
#include "transforms/rewrites/eight_bit.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

void SetFloatReduction(Node* node) {
  node->SetAttr("T", AttrValue::Type(DType::kFloat));
  node->SetAttr("keep_dims", AttrValue::Bool(false));
}

// Adds a Const [value] (int32) that runs after `producer`.
absl::StatusOr<Node*> AddDims(Graph* graph, absl::string_view name, int32_t value, Node* position, Node* producer) {
  PF_ASSIGN_OR_RETURN(
      Node * node,
      graph->AddConst(graph->UniqueName(name), Tensor::FromVector(Shape({1}), std::vector<int32_t>{value}), position));
  node->set_device(position->device());
  graph->AddControlInput(node, producer);
  return node;
}

// Returns a spelling of a tensor for use within a node's name.
std::string Mangled(TensorRef tensor) {
  const absl::string_view name = tensor.node->name();
  return tensor.port == 0 ? std::string(name) : absl::StrCat(name, "__port__", tensor.port);
}

// Returns the only element of input 1 of `node`, if that is a constant of int32; otherwise nothing. Sets *is_scalar.
std::optional<int32_t> OnlyDim(const Node& node, bool* is_scalar) {
  if (node.num_data_inputs() != 2) return std::nullopt;
  const Node* constant = ConstantBehind(node.input(1));
  if (constant == nullptr) return std::nullopt;
  const absl::StatusOr<Tensor> tensor = ConstValue(*constant);
  if (!tensor.ok() || tensor->dtype() != DType::kInt32) return std::nullopt;
  *is_scalar = tensor->shape() == Shape();
  if (!*is_scalar && tensor->shape() != Shape({1})) return std::nullopt;
  return tensor->elements<int32_t>()[0];
}

// Returns true if `ref` is the Min or Max, as selected by `op`, of all elements of `tensor`.
bool IsExtremeOf(TensorRef ref, Op op, TensorRef tensor) {
  if (ref.port != 0 || ref.node->op() != op) return false;
  bool is_scalar = false;
  // The axis of a vector: 0 and -1 are equal, as a vector of one element or as a scalar.
  const std::optional<int32_t> axis = OnlyDim(*ref.node, &is_scalar);
  if (axis != 0 && axis != -1) return false;
  const TensorRef flat = ref.node->input(0);
  return flat.port == 0 && flat.node->op() == ops::kReshape && OnlyDim(*flat.node, &is_scalar) == -1 && !is_scalar &&
         flat.node->input(0) == tensor;
}

bool HasType(const Node& node, absl::string_view attr, DType expected) {
  const absl::StatusOr<DType> found = TypeAttr(node, attr);
  return found.ok() && *found == expected;
}

bool IsPlain(const Node& node, DType codes) {
  const absl::StatusOr<std::string> mode = StringAttr(node, "mode");
  const absl::StatusOr<bool> is_narrow = BoolAttr(node, "narrow_range");
  const absl::StatusOr<int64_t> axis = IntAttr(node, "axis");
  return HasType(node, "T", codes) && mode.ok() && *mode == kCodingMode && is_narrow.ok() && !*is_narrow && axis.ok() &&
         *axis == -1 && node.num_data_inputs() == 3;
}

}  // namespace

absl::StatusOr<Node*> AddNodeAt(Graph* graph, absl::string_view name, Op op, Node* position) {
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(graph->UniqueName(name), op, position));
  node->set_device(position->device());
  return node;
}

absl::StatusOr<Node*> AddScalarAt(Graph* graph, absl::string_view name, float value, Node* position, Node* wait_for) {
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddConst(graph->UniqueName(name), Tensor::Scalar(value), position));
  node->set_device(position->device());
  if (wait_for != nullptr) graph->AddControlInput(node, wait_for);
  return node;
}

bool HasLoops(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kEnter || node->op() == ops::kRefEnter) return true;
  }
  return false;
}

void BecomeDequantize(Graph* graph, Node* node, const EightBitTensor& coded) {
  graph->ClearInputs(node);
  node->ClearAttrs();
  node->set_op(ops::kDequantize);
  node->SetAttr("T", AttrValue::Type(DType::kQUint8));
  node->SetAttr("mode", AttrValue::String(kCodingMode));
  for (const TensorRef& input : {coded.codes, coded.min, coded.max}) graph->AddInput(node, input);
}

absl::StatusOr<Node*> AddRequantize(Graph* graph, absl::string_view name, const EightBitTensor& wide, TensorRef min,
                                    TensorRef max, Node* position) {
  PF_ASSIGN_OR_RETURN(Node * node, AddNodeAt(graph, name, ops::kRequantize, position));
  node->SetAttr("Tinput", AttrValue::Type(DType::kQInt32));
  node->SetAttr("out_type", AttrValue::Type(DType::kQUint8));
  for (const TensorRef& input : {wide.codes, wide.min, wide.max, min, max}) graph->AddInput(node, input);
  return node;
}

bool IsPlainDequantize(const Node& node) {
  return node.op() == ops::kDequantize && IsPlain(node, DType::kQUint8) && HasType(node, "dtype", DType::kFloat);
}

bool IsPlainQuantize(const Node& node, DType codes) { return node.op() == ops::kQuantizeV2 && IsPlain(node, codes); }

absl::StatusOr<EightBitTensor> Quantizer::Quantize(TensorRef tensor, Node* consumer) {
  if (tensor.port == 0 && IsPlainDequantize(*tensor.node) && !graph_->IsInput(tensor.node)) {
    return EightBitTensor{tensor.node->input(0), tensor.node->input(1), tensor.node->input(2)};
  }
  Node*& quantize = quantized_[{tensor, std::string(consumer->device())}];
  if (quantize != nullptr) return CodedOutputOf(quantize);
  const std::string prefix = absl::StrCat(consumer->name(), "_eightbit/", Mangled(tensor), "/");
  const auto named = [&](absl::string_view suffix) { return absl::StrCat(prefix, suffix); };
  PF_ASSIGN_OR_RETURN(Node * shape, AddDims(graph_, named("reshape_dims"), -1, consumer, tensor.node));
  PF_ASSIGN_OR_RETURN(Node * axes, AddDims(graph_, named("reduction_dims"), 0, consumer, tensor.node));
  PF_ASSIGN_OR_RETURN(Node * flat, AddNodeAt(graph_, named("reshape"), ops::kReshape, consumer));
  flat->SetAttr("T", AttrValue::Type(DType::kFloat));
  PF_ASSIGN_OR_RETURN(Node * min, AddNodeAt(graph_, named("min"), ops::kMin, consumer));
  PF_ASSIGN_OR_RETURN(Node * max, AddNodeAt(graph_, named("max"), ops::kMax, consumer));
  SetFloatReduction(min);
  SetFloatReduction(max);
  PF_ASSIGN_OR_RETURN(quantize, AddNodeAt(graph_, named("quantize"), ops::kQuantizeV2, consumer));
  quantize->SetAttr("T", AttrValue::Type(DType::kQUint8));
  quantize->SetAttr("mode", AttrValue::String(kCodingMode));

  for (const TensorRef& input : {tensor, TensorRef{shape, 0}}) graph_->AddInput(flat, input);
  for (Node* extreme : {min, max}) {
    graph_->AddInput(extreme, {flat, 0});
    graph_->AddInput(extreme, {axes, 0});
  }
  for (const TensorRef& input : {tensor, TensorRef{min, 0}, TensorRef{max, 0}}) graph_->AddInput(quantize, input);
  return CodedOutputOf(quantize);
}

std::optional<EightBitTensor> CodesBehind(const Node& quantize) {
  if (!IsPlainQuantize(quantize, DType::kQUint8)) return std::nullopt;
  const TensorRef tensor = quantize.input(0);
  if (tensor.port != 0 || !IsPlainDequantize(*tensor.node)) return std::nullopt;
  if (!IsExtremeOf(quantize.input(1), ops::kMin, tensor) || !IsExtremeOf(quantize.input(2), ops::kMax, tensor)) {
    return std::nullopt;
  }
  return EightBitTensor{tensor.node->input(0), tensor.node->input(1), tensor.node->input(2)};
}

bool IsPartOfQuantizer(const Node& reshape) {
  for (const Use& use : reshape.uses()) {
    const Node& extreme = *use.consumer;
    if (use.index != 0 || (extreme.op() != ops::kMin && extreme.op() != ops::kMax)) return false;
    for (const Use& range : extreme.uses()) {
      if (range.consumer->op() != ops::kQuantizeV2 || (range.index != 1 && range.index != 2)) return false;
    }
  }
  return !reshape.uses().empty() && !reshape.graph().IsEndpoint(&reshape);
}

}  // namespace permafrost
