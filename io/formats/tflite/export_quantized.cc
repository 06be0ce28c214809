// Implements the search for scales and the selection of quantised operators.
#include "io/formats/tflite/export_quantized.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "io/formats/tflite/forms.h"
#include "io/formats/tflite/permuted_tensor.h"
#include "io/formats/tflite/subgraph_export.h"

namespace permafrost {
namespace {

// Maximum number of Transpose and Reshape nodes between weights and the node that reads them. Importers and passes make
// two.
constexpr int kMostLayoutNodes = 4;
constexpr absl::string_view kDynamic = "dynamic";

bool IsCodeType(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt16; }

// True for an op whose integers of one type all have the same scale.
bool MovesCodes(const Node& node) {
  if (node.op() == ops::kIdentity || node.op() == ops::kIdentityN) return true;
  for (const OperatorRow* row : FormsOf(node.op())) {
    if (row->codes == Codes::kMoved) return true;
  }
  return false;
}

DType TypeAt(const std::vector<DType>& types, int port) {
  return port >= 0 && static_cast<size_t>(port) < types.size() ? types[static_cast<size_t>(port)] : DType::kInvalid;
}

// Returns the first runtime with a version of an operator, by the table.
absl::StatusOr<absl::string_view> RuntimeOfOperator(tflite::BuiltinOperator op, int version) {
  for (const OperatorRow& row : ArithmeticOperators()) {
    if (row.op == op) return RuntimeOf(row.form, version);
  }
  for (const OperatorRow& row : ArrayOperators()) {
    if (row.op == op) return RuntimeOf(row.form, version);
  }
  return absl::InternalError("the operator is not in the table");
}

}  // namespace

absl::StatusOr<QuantizedTensors> QuantizedTensors::Find(const std::vector<Node*>& order) {
  QuantizedTensors result;
  bool has_any = false;
  for (const Node* node : order) {
    const bool reads = node->op() == UniformDequantizeOp();
    if (!reads && node->op() != UniformQuantizeOp()) continue;
    if (node->num_data_inputs() != 3) continue;
    absl::StatusOr<UniformScales> scales = ReadUniformScales(*node);
    if (!scales.ok()) return Annotate(scales.status(), node->Describe());
    has_any = true;
    const TensorRef codes = reads ? node->input(0) : TensorRef{const_cast<Node*>(node), 0};
    // Scales that a producer gives take precedence.
    if (reads) {
      result.scales_.try_emplace(codes, *std::move(scales));
    } else {
      result.scales_[codes] = *std::move(scales);
    }
  }
  if (!has_any) return result;
  // Spreads the scales forwards, then backwards.
  for (const bool forwards : {true, false}) {
    for (size_t k = 0; k < order.size(); ++k) {
      Node* node = order[forwards ? k : order.size() - 1 - k];
      if (!MovesCodes(*node) || node->num_data_inputs() == 0) continue;
      const absl::StatusOr<std::vector<DType>> types = OutputTypes(*node);
      if (!types.ok()) continue;
      const UniformScales* found = nullptr;
      DType dtype = DType::kInvalid;
      for (int i = 0; i < node->num_data_inputs() && found == nullptr; ++i) {
        const TensorRef input = node->input(i);
        const absl::StatusOr<std::vector<DType>> of_input = OutputTypes(*input.node);
        if (!of_input.ok() || !IsCodeType(TypeAt(*of_input, input.port))) continue;
        found = result.ScalesOf(input);
        dtype = TypeAt(*of_input, input.port);
      }
      for (int port = 0; found == nullptr && static_cast<size_t>(port) < types->size(); ++port) {
        if (IsCodeType(TypeAt(*types, port))) found = result.ScalesOf({node, port});
        dtype = TypeAt(*types, port);
      }
      if (found == nullptr || found->scales.size() != 1) continue;
      const UniformScales scales = *found;  // The map may grow.
      for (int port = 0; static_cast<size_t>(port) < types->size(); ++port) {
        if (TypeAt(*types, port) == dtype) result.scales_.try_emplace(TensorRef{node, port}, scales);
      }
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        const TensorRef input = node->input(i);
        const absl::StatusOr<std::vector<DType>> of_input = OutputTypes(*input.node);
        if (of_input.ok() && TypeAt(*of_input, input.port) == dtype) result.scales_.try_emplace(input, scales);
      }
    }
  }
  return result;
}

const UniformScales* QuantizedTensors::ScalesOf(TensorRef codes) const {
  const auto found = scales_.find(codes);
  return found == scales_.end() ? nullptr : &found->second;
}

const UniformScales* QuantizedTensors::ScalesBehind(TensorRef ref) const {
  if (ref.node != nullptr && ref.port == 0 && ref.node->op() == UniformDequantizeOp() &&
      ref.node->num_data_inputs() == 3) {
    return ScalesOf(ref.node->input(0));
  }
  return ScalesOf(ref);
}

absl::StatusOr<DType> QuantizedTensors::TypeOfCodes(const Node& end) {
  if (end.op() == UniformQuantizeOp()) return TypeAttr(end, "Tout");
  // A comparison: its operands have codes.
  for (int i = 0; i < end.num_data_inputs(); ++i) {
    if (end.input(i).node->op() == UniformDequantizeOp()) return TypeAttr(*end.input(i).node, "Tin");
  }
  return absl::UnimplementedError("reads no codes");
}

bool IsQuantizedEnd(const Node& node) {
  return node.HasAttr(kRoundingAttr) || node.op() == UniformQuantizeOp() || node.op() == UniformDequantizeOp();
}

TensorRef LayoutSource(TensorRef weights) {
  for (int i = 0; i < kMostLayoutNodes; ++i) {
    const Node& node = *weights.node;
    if ((node.op() != ops::kTranspose && node.op() != ops::kReshape) || node.num_data_inputs() != 2) break;
    weights = node.input(0);
  }
  return weights;
}

std::string PackedInt4(absl::string_view codes) {
  std::string bytes((codes.size() + 1) / 2, '\0');
  for (size_t i = 0; i < codes.size(); ++i) {
    const unsigned nibble = static_cast<unsigned char>(codes[i]) & 0xf;
    bytes[i / 2] = static_cast<char>(static_cast<unsigned char>(bytes[i / 2]) | (i % 2 == 0 ? nibble : nibble << 4));
  }
  return bytes;
}

flatbuffers::Offset<tflite::QuantizationParameters> EncodedScales(const UniformScales& scales,
                                                                  flatbuffers::FlatBufferBuilder* builder) {
  const auto values = builder->CreateVector(scales.scales);
  const auto points = builder->CreateVector(std::vector<int64_t>(scales.zero_points.begin(), scales.zero_points.end()));
  return tflite::CreateQuantizationParameters(*builder, 0, 0, values, points, tflite::QuantizationDetails::NONE, 0,
                                              scales.axis < 0 ? 0 : scales.axis);
}

absl::StatusOr<Tensor> SubgraphExport::WeightCodes(TensorRef ref) const {
  const Node& node = *ref.node;
  if (node.op() == ops::kTranspose && node.num_data_inputs() == 2) {
    PF_ASSIGN_OR_RETURN(const Tensor inner, WeightCodes(node.input(0)));
    const Node* order = ConstantBehind(node.input(1));
    if (order == nullptr) return absl::UnimplementedError("has weights in a layout that is not constant");
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*order));
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, IntegerValues(value));
    std::vector<bool> seen(static_cast<size_t>(inner.shape().rank()), false);
    std::vector<int32_t> permutation;
    for (const int64_t dim : dims) {
      if (dim < 0 || dim >= inner.shape().rank() || seen[static_cast<size_t>(dim)]) {
        return absl::UnimplementedError("has weights in a layout that is no permutation");
      }
      seen[static_cast<size_t>(dim)] = true;
      permutation.push_back(static_cast<int32_t>(dim));
    }
    return Permuted(inner, permutation);
  }
  if (node.op() == ops::kReshape && node.num_data_inputs() == 2) {
    PF_ASSIGN_OR_RETURN(const Tensor inner, WeightCodes(node.input(0)));
    const Shape shape = shapes_.Of(ref);
    if (!shape.IsFullyKnown()) return absl::UnimplementedError("has weights of unknown shape");
    return inner.Reshaped(shape);
  }
  const TensorRef codes =
      node.op() == UniformDequantizeOp() && node.num_data_inputs() == 3 && ref.port == 0 ? node.input(0) : ref;
  const Node* constant = ConstantBehind(codes);
  if (constant == nullptr || graph_.IsInput(constant)) {
    return absl::UnimplementedError(absl::StrCat("reads ", node.Describe(), ", expected constant weights"));
  }
  return ConstValue(*constant);
}

ExportedOperator SubgraphExport::Reshaping(int32_t from, TensorRef shape, int32_t to) {
  ExportedOperator reshape;
  reshape.op = tflite::BuiltinOperator::RESHAPE;
  std::vector<ExportedOperator> conversions;
  const absl::StatusOr<int32_t> dims = Integers(shape, &conversions);
  reshape.inputs = {from, dims.ok() ? *dims : TensorOf(shape)};
  reshape.outputs = {to};
  reshape.options_type = tflite::BuiltinOptions::ReshapeOptions;
  reshape.options = tflite::CreateReshapeOptions(model_->builder()).Union();
  return reshape;
}

absl::StatusOr<int32_t> SubgraphExport::CodesOf(TensorRef ref, std::vector<ExportedOperator>* conversions) {
  const Node& node = *ref.node;
  if (node.op() == UniformDequantizeOp() && node.num_data_inputs() == 3 && ref.port == 0)
    return TensorOf(node.input(0));
  if (node.op() == ops::kReshape && node.num_data_inputs() == 2 && ref.port == 0) {
    const UniformScales* scales = quantized_.ScalesBehind(LayoutSource(ref));
    const Node& source = *LayoutSource(ref).node;
    if (scales == nullptr || source.op() != UniformDequantizeOp()) {
      return absl::UnimplementedError(absl::StrCat("reads ", node.Describe(), ", expected codes"));
    }
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(source, "Tin"));
    const int32_t to = AddTensor(absl::StrCat(node.name(), "/codes"), dtype, shapes_.Of(ref));
    tensors_.back().scales = *scales;
    // The operators of the list run from the last to the first.
    const size_t place = conversions->size();
    conversions->emplace_back();
    PF_ASSIGN_OR_RETURN(const int32_t from, CodesOf(node.input(0), conversions));
    (*conversions)[place] = Reshaping(from, node.input(1), to);
    return to;
  }
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(node));
  if (TypeAt(types, ref.port) == DType::kFloat) {
    return absl::UnimplementedError(absl::StrCat("reads ", node.Describe(), ", expected codes"));
  }
  return TensorOf(ref);
}

absl::Status SubgraphExport::AddConversion(Node* node) {
  const bool is_quantization = node->op() == UniformQuantizeOp();
  if (node->num_data_inputs() != 3) return absl::InvalidArgumentError("has no scales");
  const UniformScales* scales = quantized_.ScalesBehind({node, 0});
  const bool has_axis = scales != nullptr && scales->scales.size() > 1;
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node, is_quantization ? "Tout" : "Tin"));
  if (!IsCodeType(dtype)) {
    model_->AddProblem(absl::StrCat(node->Describe(), " has codes of ", DTypeName(dtype)));
    return absl::OkStatus();
  }
  ExportedOperator conversion;
  if (is_quantization) {
    conversion.op = tflite::BuiltinOperator::QUANTIZE;
    conversion.version = has_axis ? 3 : dtype == DType::kInt16 ? 2 : 1;
    conversion.options_type = tflite::BuiltinOptions::QuantizeOptions;
    conversion.options = tflite::CreateQuantizeOptions(model_->builder()).Union();
  } else {
    conversion.op = tflite::BuiltinOperator::DEQUANTIZE;
    conversion.version = dtype == DType::kInt16 ? 3 : dtype == DType::kInt8 ? 2 : 1;
    if (has_axis) conversion.version = 5;
    if (scales != nullptr && scales->has_four_bits) conversion.version = 6;
    conversion.options_type = tflite::BuiltinOptions::DequantizeOptions;
    conversion.options = tflite::CreateDequantizeOptions(model_->builder()).Union();
  }
  PF_ASSIGN_OR_RETURN(const absl::string_view runtime, RuntimeOfOperator(conversion.op, conversion.version));
  model_->RequireRuntime(runtime);
  conversion.inputs = {TensorOf(node->input(0))};
  conversion.outputs = {TensorOf({node, 0})};
  operators_.push_back(std::move(conversion));
  return absl::OkStatus();
}

absl::Status SubgraphExport::SelectQuantized(Node* end) {
  if (!end->HasAttr(kRoundingAttr)) return AddConversion(end);
  PF_ASSIGN_OR_RETURN(const std::string rounding, StringAttr(*end, kRoundingAttr));
  QuantizedEnd cluster;
  cluster.end = end;
  cluster.is_dynamic = rounding == kDynamic;
  TensorRef value{end, 0};
  if (end->op() == UniformQuantizeOp()) value = end->input(0);
  // Codes to codes of another scale or type.
  if (value.node->op() == UniformDequantizeOp() && value.node != end) {
    ExportedOperator conversion;
    conversion.op = tflite::BuiltinOperator::QUANTIZE;
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*end, "Tout"));
    PF_ASSIGN_OR_RETURN(const DType from, TypeAttr(*value.node, "Tin"));
    conversion.version = dtype == DType::kInt16 || from == DType::kInt16 ? 2 : 1;
    PF_ASSIGN_OR_RETURN(const absl::string_view runtime, RuntimeOfOperator(conversion.op, conversion.version));
    model_->RequireRuntime(runtime);
    conversion.options_type = tflite::BuiltinOptions::QuantizeOptions;
    conversion.options = tflite::CreateQuantizeOptions(model_->builder()).Union();
    conversion.inputs = {TensorOf(value.node->input(0))};
    conversion.outputs = {TensorOf({end, 0})};
    operators_.push_back(std::move(conversion));
    return absl::OkStatus();
  }
  // Reshapes of the result, the last one first.
  int32_t result = TensorOf({end, 0});
  while (value.node->op() == ops::kReshape && value.node->num_data_inputs() == 2 && value.port == 0) {
    const TensorRef inner = value.node->input(0);
    if (LayoutSource(inner).node->op() == UniformDequantizeOp()) break;  // The operator itself is a reshape.
    const TensorRecord record = tensors_[static_cast<size_t>(result)];
    const int32_t from = AddTensor(absl::StrCat(value.node->name(), "/codes"), record.dtype, shapes_.Of(inner));
    tensors_.back().scales = record.scales;
    operators_.push_back(Reshaping(from, value.node->input(1), result));
    result = from;
    value = inner;
  }
  cluster.result = result;
  return Select(value.node, cluster);
}

}  // namespace permafrost
