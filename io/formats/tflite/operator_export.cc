// Implements the access to nodes of an operator under export, and the columns of the table that describe its form.
#include "io/formats/tflite/operator_export.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "io/formats/tflite/forms.h"
#include "io/formats/tflite/subgraph_export.h"

namespace permafrost {

absl::StatusOr<tflite::TensorType> TfliteTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return tflite::TensorType::FLOAT32;
    case DType::kHalf:
      return tflite::TensorType::FLOAT16;
    case DType::kBFloat16:
      return tflite::TensorType::BFLOAT16;
    case DType::kDouble:
      return tflite::TensorType::FLOAT64;
    case DType::kInt8:
      return tflite::TensorType::INT8;
    case DType::kInt16:
      return tflite::TensorType::INT16;
    case DType::kInt32:
      return tflite::TensorType::INT32;
    case DType::kInt64:
      return tflite::TensorType::INT64;
    case DType::kUint8:
      return tflite::TensorType::UINT8;
    case DType::kUint16:
      return tflite::TensorType::UINT16;
    case DType::kUint32:
      return tflite::TensorType::UINT32;
    case DType::kUint64:
      return tflite::TensorType::UINT64;
    case DType::kBool:
      return tflite::TensorType::BOOL;
    case DType::kString:
      return tflite::TensorType::STRING;
    case DType::kResource:
      return tflite::TensorType::RESOURCE;
    case DType::kVariant:
      return tflite::TensorType::VARIANT;
    case DType::kComplex64:
      return tflite::TensorType::COMPLEX64;
    case DType::kComplex128:
      return tflite::TensorType::COMPLEX128;
    default:
      return absl::UnimplementedError(
          absl::StrCat("is of type ", DTypeName(dtype), ", which the format does not have"));
  }
}

int TypedOperand(const OperatorForm& form) {
  int operand = 0;
  const absl::string_view first = form.types.substr(0, form.types.find(' '));
  if (!first.empty() && first[0] == '@' && !absl::SimpleAtoi(first.substr(1), &operand)) operand = 0;
  return operand;
}

namespace {

// Returns the version that a list such as "float int64:4" gives the type.
absl::StatusOr<int> VersionIn(absl::string_view types, DType dtype) {
  const std::string name = DTypeName(dtype);
  std::vector<absl::string_view> known;
  for (const absl::string_view word : absl::StrSplit(types, ' ')) {
    if (word.empty() || word[0] == '@') continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, absl::MaxSplits(':', 1));
    known.push_back(parts.first);
    int version = 1;
    if (parts.first == name && (parts.second.empty() || absl::SimpleAtoi(parts.second, &version))) return version;
  }
  return absl::UnimplementedError(
      absl::StrCat("computes with ", name, ", expected one of ", absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<int> VersionFor(const OperatorForm& form, DType dtype) {
  if (form.types.empty()) return 1;
  return VersionIn(form.types, dtype);
}

absl::StatusOr<int> VersionForCodes(const OperatorForm& form, DType dtype) {
  if (form.codes.empty()) return absl::UnimplementedError("has no kernel for codes");
  return VersionIn(form.codes, dtype);
}

absl::StatusOr<absl::string_view> RuntimeOf(const OperatorForm& form, int version) {
  const std::vector<absl::string_view> runtimes = absl::StrSplit(form.runtimes, ' ');
  if (version < 1 || static_cast<size_t>(version) > runtimes.size() ||
      runtimes[static_cast<size_t>(version) - 1] == "-") {
    return absl::InternalError(absl::StrCat("no runtime is known for version ", version));
  }
  return runtimes[static_cast<size_t>(version) - 1];
}

flatbuffers::FlatBufferBuilder& OperatorExport::builder() { return subgraph_->model().builder(); }

Shape OperatorExport::ShapeOf(TensorRef tensor) const { return subgraph_->shapes().Of(tensor); }

absl::StatusOr<DType> OperatorExport::TypeOf(TensorRef tensor) const {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*tensor.node));
  if (tensor.port < 0 || static_cast<size_t>(tensor.port) >= types.size()) {
    return absl::InvalidArgumentError(absl::StrCat(tensor.node->Describe(), " has no output ", tensor.port));
  }
  return types[static_cast<size_t>(tensor.port)];
}

absl::StatusOr<Tensor> OperatorExport::Constant(TensorRef tensor) const {
  const Node* constant = ConstantBehind(tensor);
  if (constant == nullptr || subgraph_->graph().IsInput(constant)) {
    return absl::UnimplementedError(absl::StrCat("reads ", tensor.node->Describe(), ", expected a constant"));
  }
  return ConstValue(*constant);
}

absl::StatusOr<Tensor> OperatorExport::Weight(TensorRef tensor) const {
  if (end_ != nullptr) return subgraph_->WeightCodes(tensor);
  const Node* constant = WeightBehind(tensor);
  if (constant == nullptr) {
    return absl::UnimplementedError(absl::StrCat("reads ", tensor.node->Describe(), ", expected a constant"));
  }
  return ConstValue(*constant);
}

absl::StatusOr<std::vector<int64_t>> OperatorExport::ConstantIntegers(TensorRef tensor) const {
  PF_ASSIGN_OR_RETURN(const Tensor value, Constant(tensor));
  return IntegerValues(value);
}

absl::StatusOr<double> OperatorExport::ConstantScalar(TensorRef tensor) const {
  PF_ASSIGN_OR_RETURN(const Tensor value, Constant(tensor));
  if (value.num_elements() == 1) {
    if (value.dtype() == DType::kFloat) return value.elements<float>()[0];
    if (value.dtype() == DType::kDouble) return value.elements<double>()[0];
    if (value.dtype() == DType::kInt32) return value.elements<int32_t>()[0];
    if (value.dtype() == DType::kInt16) return value.elements<int16_t>()[0];
    if (value.dtype() == DType::kInt8) return value.elements<int8_t>()[0];
    if (value.dtype() == DType::kUint8) return value.elements<uint8_t>()[0];
    if (value.dtype() == DType::kInt64) return static_cast<double>(value.elements<int64_t>()[0]);
  }
  return absl::UnimplementedError(
      absl::StrCat("reads a constant of shape ", value.shape().ToString(), ", expected one number"));
}

bool OperatorExport::is_asymmetric() const {
  return end_ != nullptr && BoolAttr(*end_, kAsymmetricAttr).value_or(false);
}

const UniformScales* OperatorExport::ScalesBehind(TensorRef tensor) const {
  return subgraph_->quantized().ScalesBehind(tensor);
}

absl::StatusOr<DType> OperatorExport::CodesOfOperand(int input) const {
  const Node& source = *LayoutSource(this->input(input)).node;
  if (source.op() != UniformDequantizeOp()) return absl::UnimplementedError("reads no codes");
  return TypeAttr(source, "Tin");
}

std::optional<UniformScales> OperatorExport::WeightScales(TensorRef weights, int axis) const {
  if (end_ == nullptr) return std::nullopt;
  const UniformScales* scales = ScalesBehind(LayoutSource(weights));
  if (scales == nullptr) return std::nullopt;
  UniformScales result = *scales;
  result.axis = result.scales.size() > 1 ? axis : -1;
  return result;
}

absl::Status OperatorExport::RequireVersionFor(DType dtype) {
  PF_ASSIGN_OR_RETURN(const int version, VersionFor(*form_, dtype));
  RequireVersion(version);
  return absl::OkStatus();
}

absl::StatusOr<int32_t> OperatorExport::SubgraphOf(absl::string_view attr, std::vector<Shape> args) {
  const AttrValue* value = node_->FindAttr(attr);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat("has no attr '", attr, "'"));
  PF_ASSIGN_OR_RETURN(const FunctionRef function, value->AsFunction());
  return subgraph_->model().SubgraphOf(function, std::move(args));
}

absl::StatusOr<std::vector<int32_t>> OperatorExport::SubgraphsOf(absl::string_view attr,
                                                                 const std::vector<Shape>& args) {
  const AttrValue* value = node_->FindAttr(attr);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat("has no attr '", attr, "'"));
  PF_ASSIGN_OR_RETURN(const std::vector<FunctionRef> functions, value->AsFunctionList());
  std::vector<int32_t> subgraphs;
  for (const FunctionRef& function : functions) {
    PF_ASSIGN_OR_RETURN(subgraphs.emplace_back(), subgraph_->model().SubgraphOf(function, args));
  }
  return subgraphs;
}

std::string OperatorExport::UseResource() { return subgraph_->model().UseResource(*node_); }

bool OperatorExport::IsReadOnce(const Node& inner) const {
  const Graph& graph = subgraph_->graph();
  return subgraph_->NumReaders(inner) == 1 && !graph.IsEndpoint(&inner);
}

}  // namespace permafrost
