// Implements the creation of nodes, with the attributes that follow from their inputs.
#include "io/formats/tflite/operator_import.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "io/formats/tflite/flex.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
OperatorImport::OperatorImport(SubgraphImport* subgraph, const tflite::Operator& op, std::string name, Codes codes)
    : subgraph_(subgraph), op_(op), name_(std::move(name)) {
  bool has_codes = false;
  for (int i = 0; i < num_inputs(); ++i) is_marked_ |= IsQuantizedInput(i);
  for (int i = 0; i < num_outputs(); ++i) has_codes |= IsQuantizedOutput(i);
  computes_ = (codes == Codes::kComputed || codes == Codes::kExact) && (is_marked_ || has_codes);
  is_marked_ = is_marked_ && codes == Codes::kComputed;
}

Graph& OperatorImport::graph() { return subgraph_->graph(); }

bool OperatorImport::HasInput(int i) const {
  return i < num_inputs() && op_.inputs()->Get(static_cast<uint32_t>(i)) >= 0;
}

absl::StatusOr<TensorRef> OperatorImport::Input(int i) {
  if (!HasInput(i)) return absl::InvalidArgumentError(absl::StrCat("lacks operand ", i));
  const int32_t tensor = op_.inputs()->Get(static_cast<uint32_t>(i));
  return computes_ && IsQuantizedInput(i) ? subgraph_->DequantizedOf(tensor) : subgraph_->ValueOf(tensor);
}

DType OperatorImport::InputType(int i) const {
  return computes_ && IsQuantizedInput(i) ? DType::kFloat : DTypeOfTflite(InputTensor(i).type());
}

DType OperatorImport::OutputType(int i) const {
  return computes_ && IsQuantizedOutput(i) ? DType::kFloat : DTypeOfTflite(OutputTensor(i).type());
}

absl::StatusOr<std::vector<TensorRef>> OperatorImport::Inputs() {
  std::vector<TensorRef> inputs;
  for (int i = 0; i < num_inputs(); ++i) {
    PF_ASSIGN_OR_RETURN(inputs.emplace_back(), Input(i));
  }
  return inputs;
}

const tflite::Tensor& OperatorImport::InputTensor(int i) const {
  return subgraph_->tensor(op_.inputs()->Get(static_cast<uint32_t>(i)));
}

const tflite::Tensor& OperatorImport::OutputTensor(int i) const {
  return subgraph_->tensor(op_.outputs()->Get(static_cast<uint32_t>(i)));
}

absl::StatusOr<const Tensor*> OperatorImport::InputValue(int i) {
  if (!HasInput(i) || (computes_ && IsQuantizedInput(i))) return nullptr;
  return subgraph_->ConstantOf(op_.inputs()->Get(static_cast<uint32_t>(i)));
}

absl::StatusOr<TensorRef> OperatorImport::Dequantized(int i) {
  if (!HasInput(i)) return absl::InvalidArgumentError(absl::StrCat("lacks operand ", i));
  const int32_t tensor = op_.inputs()->Get(static_cast<uint32_t>(i));
  PF_ASSIGN_OR_RETURN(const TensorRef codes, subgraph_->ValueOf(tensor));
  PF_ASSIGN_OR_RETURN(const SubgraphImport::Scales scales, subgraph_->ScalesOf(tensor));
  PF_ASSIGN_OR_RETURN(Node * node, Add(UniformDequantizeOp(), {codes, scales.scales, scales.zero_points}));
  scales.SetAttrs(node);
  return TensorRef{node, 0};
}

absl::StatusOr<TensorRef> OperatorImport::Bias(int i, int input, int filter) {
  const DType dtype = DTypeOfTflite(InputTensor(i).type());
  if (!computes_ || (dtype != DType::kInt32 && dtype != DType::kInt64)) return Input(i);
  const auto* of_input = InputTensor(input).quantization();
  const auto* of_filter = InputTensor(filter).quantization();
  if (!IsQuantizedInput(input) || !IsQuantizedInput(filter)) {
    return absl::InvalidArgumentError("has a bias of codes, and an input or a filter without scales");
  }
  std::vector<float> scales;
  for (const float scale : *of_filter->scale()) scales.push_back(scale * of_input->scale()->Get(0));
  const int64_t count = static_cast<int64_t>(scales.size());
  PF_ASSIGN_OR_RETURN(const TensorRef codes, subgraph_->ValueOf(op_.inputs()->Get(static_cast<uint32_t>(i))));
  PF_ASSIGN_OR_RETURN(const TensorRef zero_points,
                      Const(Tensor::FromVector(Shape({count}), std::vector<int32_t>(scales.size(), 0))));
  PF_ASSIGN_OR_RETURN(const TensorRef factors, Const(Tensor::FromVector(Shape({count}), std::move(scales))));
  PF_ASSIGN_OR_RETURN(Node * node,
                      Add(UniformDequantizeOp(), {codes, factors, zero_points},
                          {{"quantization_axis", AttrValue::Int(count > 1 ? 0 : -1)},
                           {"quantization_min_val", AttrValue::Int(std::numeric_limits<int32_t>::min())},
                           {"quantization_max_val", AttrValue::Int(std::numeric_limits<int32_t>::max())}}));
  return TensorRef{node, 0};
}

absl::Status OperatorImport::Quantize(std::vector<TensorRef>* results) {
  if (!computes_) return absl::OkStatus();
  for (size_t i = 0; i < results->size() && static_cast<int>(i) < num_outputs(); ++i) {
    TensorRef& result = (*results)[i];
    if (IsQuantizedOutput(static_cast<int>(i))) {
      const int32_t tensor = op_.outputs()->Get(static_cast<uint32_t>(i));
      const DType dtype = DTypeOfTflite(OutputTensor(static_cast<int>(i)).type());
      PF_ASSIGN_OR_RETURN(const SubgraphImport::Scales scales, subgraph_->ScalesOf(tensor));
      PF_ASSIGN_OR_RETURN(Node * node, Add(UniformQuantizeOp(), {result, scales.scales, scales.zero_points},
                                           {{"Tout", AttrValue::Type(dtype)}}));
      scales.SetAttrs(node);
      result = {node, 0};
    } else if (is_marked_) {
      PF_ASSIGN_OR_RETURN(const DType dtype, TypeOf(result));
      if (dtype != DType::kBool && rounding_ != "dynamic") {
        return absl::UnimplementedError("has quantised operands and a result that is not quantised");
      }
    }
    if (!is_marked_) continue;
    if (!IsOwn(*result.node)) return absl::InternalError("the node to be marked belongs to another operator");
    result.node->SetAttr(kRoundingAttr, AttrValue::String(rounding_));
    for (const auto& [key, value] : marks_) result.node->SetAttr(key, value);
  }
  return absl::OkStatus();
}

absl::StatusOr<DType> OperatorImport::TypeOf(TensorRef tensor) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*tensor.node));
  if (tensor.port < 0 || static_cast<size_t>(tensor.port) >= types.size()) {
    return absl::InternalError(absl::StrCat(tensor.node->Describe(), " has no output ", tensor.port));
  }
  return types[static_cast<size_t>(tensor.port)];
}

absl::StatusOr<Node*> OperatorImport::Add(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs) {
  const OpSchema* schema = FindSchema(op);
  if (schema == nullptr) return absl::InternalError(absl::StrCat("no schema of ", op.name()));
  PF_ASSIGN_OR_RETURN(Node * node, graph().AddNode(graph().UniqueName(absl::StrCat(name_, "/", op.name())), op));
  for (const TensorRef& input : inputs) graph().AddInput(node, input);
  // Determines types and counts of the inputs. At most one argument is a list, which takes the remaining inputs.
  int num_single = 0;
  for (const ArgSpec& arg : schema->inputs) num_single += arg.number_attr.empty() && !arg.is_type_list ? 1 : 0;
  const int num_listed = static_cast<int>(inputs.size()) - num_single;
  size_t next = 0;
  for (const ArgSpec& arg : schema->inputs) {
    const size_t count =
        arg.number_attr.empty() && !arg.is_type_list ? 1 : static_cast<size_t>(std::max(0, num_listed));
    if (next + count > inputs.size()) {
      return absl::InternalError(absl::StrCat(node->Describe(), " has ", inputs.size(), " inputs, expected more"));
    }
    if (!arg.number_attr.empty()) node->SetAttr(arg.number_attr, AttrValue::Int(static_cast<int64_t>(count)));
    if (!arg.type_attr.empty()) {
      std::vector<DType> types;
      for (size_t i = next; i < next + count; ++i) {
        PF_ASSIGN_OR_RETURN(types.emplace_back(), TypeOf(inputs[i]));
      }
      if (arg.is_type_list) {
        node->SetAttr(arg.type_attr, AttrValue::TypeList(types));
      } else if (!types.empty()) {
        node->SetAttr(arg.type_attr, AttrValue::Type(types[0]));
      }
    }
    next += count;
  }
  for (const auto& [key, value] : attrs) node->SetAttr(key, value);
  own_.insert(node);
  return node;
}

absl::StatusOr<TensorRef> OperatorImport::Emit(Op op, absl::Span<const TensorRef> inputs, const Attrs& attrs) {
  PF_ASSIGN_OR_RETURN(Node * node, Add(op, inputs, attrs));
  return TensorRef{node, 0};
}

absl::StatusOr<TensorRef> OperatorImport::Const(Tensor value) {
  PF_ASSIGN_OR_RETURN(Node * node,
                      graph().AddConst(graph().UniqueName(absl::StrCat(name_, "/Const")), std::move(value)));
  own_.insert(node);
  return TensorRef{node, 0};
}

absl::StatusOr<TensorRef> OperatorImport::Ints(absl::Span<const int32_t> values) {
  return Const(Tensor::FromVector(Shape({static_cast<int64_t>(values.size())}),
                                  std::vector<int32_t>(values.begin(), values.end())));
}

absl::StatusOr<TensorRef> OperatorImport::ScalarLike(TensorRef like, double value) {
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeOf(like));
  switch (dtype) {
    case DType::kFloat:
      return Const(Tensor::Scalar(static_cast<float>(value)));
    case DType::kDouble:
      return Const(Tensor::Scalar(value));
    case DType::kInt32:
      return Const(Tensor::Scalar(static_cast<int32_t>(value)));
    case DType::kInt64:
      return Const(Tensor::Scalar(static_cast<int64_t>(value)));
    case DType::kInt16:
      return Const(Tensor::Scalar(static_cast<int16_t>(value)));
    case DType::kInt8:
      return Const(Tensor::Scalar(static_cast<int8_t>(value)));
    case DType::kUint8:
      return Const(Tensor::Scalar(static_cast<uint8_t>(value)));
    default:
      return absl::UnimplementedError(
          absl::StrCat("computes with ", DTypeName(dtype), ", expected a number of at most 64 bits"));
  }
}

absl::StatusOr<TensorRef> OperatorImport::ClampCodes(TensorRef x, tflite::ActivationFunctionType activation) {
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeOf(x));
  const auto* quantization = OutputTensor(0).quantization();
  const double scale = quantization->scale()->Get(0);
  const auto* points = quantization->zero_point();
  const int64_t zero_point = points == nullptr || points->size() == 0 ? 0 : points->Get(0);
  if (!(scale > 0)) return absl::InvalidArgumentError(absl::StrCat("its result has the scale ", scale));
  const CodeLimits limits = LimitsOf(dtype);
  const auto code = [&](double number) {
    const double rounded = std::round(static_cast<float>(number) / static_cast<float>(scale));
    return static_cast<double>(std::clamp(static_cast<double>(zero_point) + rounded, static_cast<double>(limits.low),
                                          static_cast<double>(limits.high)));
  };
  switch (activation) {
    case tflite::ActivationFunctionType::RELU:
      return Clamp(x, code(0), static_cast<double>(limits.high));
    case tflite::ActivationFunctionType::RELU6:
      return Clamp(x, code(0), code(6));
    case tflite::ActivationFunctionType::RELU_N1_TO_1:
      return Clamp(x, code(-1), code(1));
    default:
      return absl::UnimplementedError(
          absl::StrCat("has the fused activation ", static_cast<int>(activation), " of codes, which is not supported"));
  }
}

absl::StatusOr<TensorRef> OperatorImport::Activate(TensorRef x, tflite::ActivationFunctionType activation) {
  if (activation != tflite::ActivationFunctionType::NONE && !computes_ && IsQuantizedOutput(0)) {
    return ClampCodes(x, activation);
  }
  switch (activation) {
    case tflite::ActivationFunctionType::NONE:
      return x;
    case tflite::ActivationFunctionType::RELU:
      return Emit(ops::kRelu, {x});
    case tflite::ActivationFunctionType::RELU6:
      return Emit(ops::kRelu6, {x});
    case tflite::ActivationFunctionType::TANH:
      return Emit(ops::kTanh, {x});
    case tflite::ActivationFunctionType::RELU_N1_TO_1:
      return Clamp(x, -1, 1);
    default:
      return absl::UnimplementedError(
          absl::StrCat("has the fused activation ", static_cast<int>(activation), ", which is not supported"));
  }
}

absl::StatusOr<TensorRef> OperatorImport::Clamp(TensorRef x, double least, double most) {
  PF_ASSIGN_OR_RETURN(const TensorRef low, ScalarLike(x, least));
  PF_ASSIGN_OR_RETURN(const TensorRef high, ScalarLike(x, most));
  PF_ASSIGN_OR_RETURN(const TensorRef bounded, Emit(ops::kMinimum, {x, high}));
  return Emit(ops::kMaximum, {bounded, low});
}

absl::StatusOr<FunctionRef> OperatorImport::FunctionOf(int subgraph) { return subgraph_->model().FunctionOf(subgraph); }

absl::StatusOr<Node*> OperatorImport::AddCall(Op stateless, Op stateful, absl::Span<const int> subgraphs,
                                              absl::Span<const TensorRef> inputs, const Attrs& attrs) {
  bool has_state = false;
  for (const int subgraph : subgraphs) has_state |= subgraph_->model().IsStateful(subgraph);
  PF_ASSIGN_OR_RETURN(Node * node, Add(has_state ? stateful : stateless, inputs, attrs));
  if (has_state) subgraph_->Order(node, nullptr, true);
  return node;
}

absl::StatusOr<TensorRef> OperatorImport::State(int i) {
  if (!HasInput(i)) return absl::InvalidArgumentError(absl::StrCat("lacks operand ", i));
  PF_ASSIGN_OR_RETURN(Node * handle, subgraph_->StateOf(op_.inputs()->Get(static_cast<uint32_t>(i))));
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*handle, "dtype"));
  PF_ASSIGN_OR_RETURN(Node * node,
                      Add(ops::kReadVariableOp, {TensorRef{handle, 0}}, {{"dtype", AttrValue::Type(dtype)}}));
  subgraph_->Order(node, handle, false);
  return TensorRef{node, 0};
}

absl::Status OperatorImport::SetState(int i, TensorRef value) {
  PF_ASSIGN_OR_RETURN(Node * handle, subgraph_->StateOf(op_.inputs()->Get(static_cast<uint32_t>(i))));
  PF_ASSIGN_OR_RETURN(Node * node, Add(ops::kAssignVariableOp, {TensorRef{handle, 0}, value}));
  subgraph_->Order(node, handle, true);
  return absl::OkStatus();
}

std::vector<TensorRef> AllOutputs(Node* node, int count) {
  std::vector<TensorRef> outputs;
  for (int i = 0; i < count; ++i) outputs.push_back({node, i});
  return outputs;
}

const OperatorRow* FindOperator(const TfliteContainer& container, const tflite::Operator& op) {
  const tflite::BuiltinOperator number = container.OperatorOf(op);
  if (number != tflite::BuiltinOperator::CUSTOM) return FindBuiltinOperator(number);
  for (const absl::Span<const CustomOperatorRow> family : {CustomOperators(), CustomWindowOperators()}) {
    for (const CustomOperatorRow& custom : family) {
      if (custom.name == container.CustomName(op)) return &custom.row;
    }
  }
  return absl::StartsWith(container.CustomName(op), kFlexPrefix) ? &FlexRow() : nullptr;
}

const OperatorRow* FindBuiltinOperator(tflite::BuiltinOperator op) {
  static const auto* const kRows = [] {
    auto* rows = new absl::flat_hash_map<int, const OperatorRow*>;
    for (const absl::Span<const OperatorRow> family :
         {ArrayOperators(), ArithmeticOperators(), NeuralOperators(), ControlOperators(), RecurrentOperators(),
          ResourceOperators(), VolumeOperators(), StablehloOperators(), WindowOperators(), RandomOperators(),
          TextOperators()}) {
      for (const OperatorRow& row : family) rows->emplace(static_cast<int>(row.op), &row);
    }
    return rows;
  }();
  const auto found = kRows->find(static_cast<int>(op));
  return found == kRows->end() ? nullptr : found->second;
}

absl::string_view WhyNoRow(tflite::BuiltinOperator op) {
  using tflite::BuiltinOperator;
  switch (op) {
    case BuiltinOperator::CONCAT_EMBEDDINGS:
    case BuiltinOperator::CALL:
    case BuiltinOperator::STABLEHLO_LOGISTIC:
    case BuiltinOperator::STABLEHLO_DIVIDE:
    case BuiltinOperator::STABLEHLO_RESHAPE:
    case BuiltinOperator::STABLEHLO_CLAMP:
    case BuiltinOperator::STABLEHLO_CONCATENATE:
    case BuiltinOperator::STABLEHLO_BROADCAST_IN_DIM:
    case BuiltinOperator::STABLEHLO_CONVOLUTION:
    case BuiltinOperator::STABLEHLO_SLICE:
    case BuiltinOperator::STABLEHLO_CUSTOM_CALL:
    case BuiltinOperator::STABLEHLO_REDUCE:
    case BuiltinOperator::STABLEHLO_ABS:
    case BuiltinOperator::STABLEHLO_COSINE:
    case BuiltinOperator::STABLEHLO_EXPONENTIAL:
    case BuiltinOperator::STABLEHLO_FLOOR:
    case BuiltinOperator::STABLEHLO_LOG:
    case BuiltinOperator::STABLEHLO_NEGATE:
    case BuiltinOperator::STABLEHLO_OR:
    case BuiltinOperator::STABLEHLO_POWER:
    case BuiltinOperator::STABLEHLO_REMAINDER:
    case BuiltinOperator::STABLEHLO_RSQRT:
    case BuiltinOperator::STABLEHLO_SELECT:
    case BuiltinOperator::STABLEHLO_SUBTRACT:
    case BuiltinOperator::STABLEHLO_TANH:
    case BuiltinOperator::STABLEHLO_COMPARE:
    case BuiltinOperator::STABLEHLO_CONVERT:
    case BuiltinOperator::STABLEHLO_DYNAMIC_SLICE:
    case BuiltinOperator::STABLEHLO_DYNAMIC_UPDATE_SLICE:
    case BuiltinOperator::STABLEHLO_IOTA:
    case BuiltinOperator::STABLEHLO_DOT_GENERAL:
    case BuiltinOperator::STABLEHLO_SORT:
    case BuiltinOperator::STABLEHLO_WHILE:
    case BuiltinOperator::STABLEHLO_TRANSPOSE:
    case BuiltinOperator::STABLEHLO_CBRT:
      return "has no kernel in LiteRT either";
    case BuiltinOperator::DELEGATE:
      return "is made by delegates when a model runs, and has no place in a file";
    case BuiltinOperator::PLACEHOLDER_FOR_GREATER_OP_CODES:
      return "stands for operators with larger numbers, and is none itself";
    case BuiltinOperator::LSH_PROJECTION:
      return "hashes bytes of tensors, for which there is no op";
    case BuiltinOperator::SKIP_GRAM:
      return "makes n-grams with gaps, for which there is no op";
    case BuiltinOperator::STABLEHLO_RNG_BIT_GENERATOR:
      return "returns the state of its generator, for which there is no op";
    default:
      return "";
  }
}

}  // namespace permafrost
