// Implements the creation of nodes, with the attributes that follow from their inputs.
#include "io/formats/tflite/operator_import.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {

Graph& OperatorImport::graph() { return subgraph_->graph(); }

bool OperatorImport::HasInput(int i) const {
  return i < num_inputs() && op_.inputs()->Get(static_cast<uint32_t>(i)) >= 0;
}

absl::StatusOr<TensorRef> OperatorImport::Input(int i) {
  if (!HasInput(i)) return absl::InvalidArgumentError(absl::StrCat("lacks operand ", i));
  return subgraph_->ValueOf(op_.inputs()->Get(static_cast<uint32_t>(i)));
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
  if (!HasInput(i)) return nullptr;
  return subgraph_->ConstantOf(op_.inputs()->Get(static_cast<uint32_t>(i)));
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
    default:
      return absl::UnimplementedError(absl::StrCat("computes with ", DTypeName(dtype), ", expected float or int32"));
  }
}

absl::StatusOr<TensorRef> OperatorImport::Activate(TensorRef x, tflite::ActivationFunctionType activation) {
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

std::vector<TensorRef> AllOutputs(Node* node, int count) {
  std::vector<TensorRef> outputs;
  for (int i = 0; i < count; ++i) outputs.push_back({node, i});
  return outputs;
}

const OperatorRow* FindOperator(const TfliteContainer& container, const tflite::Operator& op) {
  const tflite::BuiltinOperator number = container.OperatorOf(op);
  if (number == tflite::BuiltinOperator::CUSTOM) {
    for (const CustomOperatorRow& custom : CustomOperators()) {
      if (custom.name == container.CustomName(op)) return &custom.row;
    }
    return nullptr;
  }
  static const auto* const kRows = [] {
    auto* rows = new absl::flat_hash_map<int, const OperatorRow*>;
    for (const absl::Span<const OperatorRow> family :
         {ArrayOperators(), ArithmeticOperators(), NeuralOperators(), ControlOperators()}) {
      for (const OperatorRow& row : family) rows->emplace(static_cast<int>(row.op), &row);
    }
    return rows;
  }();
  const auto found = kRows->find(static_cast<int>(number));
  return found == kRows->end() ? nullptr : found->second;
}

}  // namespace permafrost
