// Implements the description of carried operators as models of one operator.
#include "io/formats/tflite/carried_operator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

constexpr absl::string_view kPrefix = "TFLite:";
constexpr absl::string_view kModelAttr = "model";
constexpr absl::string_view kCustomOptionsAttr = "custom_options", kOperandsAttr = "operands";
// Names of custom operators are cut to this length; the description has the whole name.
constexpr size_t kLongestName = 100;
// The description of an operator is smaller than what it describes in the file, but operators may share their parts.
// Without a limit, a small file could ask for much memory.
constexpr uint64_t kFileFactor = 4, kLeastBytes = 1 << 20;

Op CarriedOp(const TfliteContainer& container, const tflite::Operator& op) {
  const tflite::BuiltinOperator number = container.OperatorOf(op);
  std::string name(container.CustomName(op));
  if (number != tflite::BuiltinOperator::CUSTOM) {
    name = tflite::EnumNameBuiltinOperator(number);
    if (name.empty()) name = absl::StrCat("operator_", static_cast<int32_t>(number));
  }
  name.resize(std::min(name.size(), kLongestName));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  }
  return Op::Named(absl::StrCat(kPrefix, name.empty() ? "unnamed" : name));
}

template <typename Vector>
uint64_t BytesOf(const Vector* vector) {
  return vector == nullptr ? 0 : uint64_t{vector->size()} * sizeof(typename Vector::return_type);
}

uint64_t BytesOf(const flatbuffers::String* text) { return text == nullptr ? 0 : text->size(); }

uint64_t BytesOf(tflite::SparseIndexVector type, const void* table) {
  if (table == nullptr) return 0;
  switch (type) {
    case tflite::SparseIndexVector::Int32Vector:
      return BytesOf(static_cast<const tflite::Int32Vector*>(table)->values());
    case tflite::SparseIndexVector::Uint16Vector:
      return BytesOf(static_cast<const tflite::Uint16Vector*>(table)->values());
    case tflite::SparseIndexVector::Uint8Vector:
      return BytesOf(static_cast<const tflite::Uint8Vector*>(table)->values());
    default:
      return 0;
  }
}

std::string Encoded(const CarriedOperator& carried) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  for (const auto& tensor : carried.tensors) tensors.push_back(tflite::CreateTensor(builder, tensor.get()));
  std::vector<int32_t> inputs, outputs;
  for (int i = 0; i < carried.num_inputs; ++i) inputs.push_back(i);
  for (int i = 0; i < carried.num_outputs; ++i) outputs.push_back(carried.num_inputs + i);
  const auto op = tflite::CreateOperator(builder, &carried.op);
  const auto code = tflite::CreateOperatorCode(builder, &carried.code);
  const auto subgraph = tflite::CreateSubGraph(builder, builder.CreateVector(tensors), builder.CreateVector(inputs),
                                               builder.CreateVector(outputs), builder.CreateVector(&op, 1));
  const auto buffer = tflite::CreateBuffer(builder);
  constexpr uint32_t kSchemaVersion = 3;
  tflite::FinishModelBuffer(
      builder, tflite::CreateModel(builder, kSchemaVersion, builder.CreateVector(&code, 1),
                                   builder.CreateVector(&subgraph, 1), 0, builder.CreateVector(&buffer, 1)));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

// Replaces the numbers of tensors that hold the scales of blocks by those in the description.
tflite::BlockwiseQuantizationT* BlocksOf(tflite::TensorT* tensor) {
  return tensor->quantization == nullptr ? nullptr : tensor->quantization->details.AsBlockwiseQuantization();
}

}  // namespace

tflite::BuiltinOperator OperatorOf(const tflite::OperatorCodeT& code) {
  return static_cast<tflite::BuiltinOperator>(
      std::max<int32_t>(code.deprecated_builtin_code, static_cast<int32_t>(code.builtin_code)));
}

uint64_t DescriptionBytes(const tflite::Tensor& tensor) {
  uint64_t bytes =
      sizeof(tflite::TensorT) + BytesOf(tensor.shape()) + BytesOf(tensor.shape_signature()) + BytesOf(tensor.name());
  if (const auto* quantization = tensor.quantization()) {
    bytes += sizeof(tflite::QuantizationParametersT) + BytesOf(quantization->min()) + BytesOf(quantization->max()) +
             BytesOf(quantization->scale()) + BytesOf(quantization->zero_point());
    if (const auto* custom = quantization->details_as_CustomQuantization()) bytes += BytesOf(custom->custom());
  }
  if (const auto* sparsity = tensor.sparsity()) {
    bytes += BytesOf(sparsity->traversal_order()) + BytesOf(sparsity->block_map());
    if (sparsity->dim_metadata() != nullptr) {
      for (const auto* level : *sparsity->dim_metadata()) {
        bytes += sizeof(tflite::DimensionMetadataT) + BytesOf(level->array_segments_type(), level->array_segments()) +
                 BytesOf(level->array_indices_type(), level->array_indices());
      }
    }
  }
  if (tensor.variant_tensors() != nullptr) {
    for (const auto* variant : *tensor.variant_tensors()) {
      bytes += sizeof(tflite::VariantSubTypeT) + BytesOf(variant->shape());
    }
  }
  return bytes;
}

bool IsCarried(Op op) { return !op.is_known() && absl::StartsWith(op.name(), kPrefix); }

absl::StatusOr<CarriedOperator> ReadCarried(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string text, StringAttr(node, kModelAttr));
  // The decoded description has its own copies.
  const absl::StatusOr<TfliteContainer> container = TfliteContainer::Open(FileView{text, nullptr}, 0);
  PF_RETURN_IF_ERROR(Annotate(container.status(), absl::StrCat(node.Describe(), ": attr '", kModelAttr, "'")));
  const auto invalid = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": attr '", kModelAttr, "': ", problem));
  };
  const tflite::SubGraph& subgraph = container->subgraph(0);
  if (subgraph.operators() == nullptr || subgraph.operators()->size() != 1) {
    return invalid("expected a model of one operator");
  }
  CarriedOperator carried;
  const tflite::Operator& op = *subgraph.operators()->Get(0);
  uint64_t bytes = 0;
  const uint32_t num_tensors = subgraph.tensors() == nullptr ? 0 : subgraph.tensors()->size();
  for (uint32_t i = 0; i < num_tensors; ++i) bytes += DescriptionBytes(*subgraph.tensors()->Get(i));
  if (bytes > kFileFactor * text.size() + kLeastBytes) return invalid("its tensors share more than is supported");
  op.UnPackTo(&carried.op);
  container->model().operator_codes()->Get(op.opcode_index())->UnPackTo(&carried.code);
  carried.op.opcode_index = 0;
  for (uint32_t i = 0; i < num_tensors; ++i) {
    carried.tensors.emplace_back(subgraph.tensors()->Get(i)->UnPack());
    carried.tensors.back()->buffer = 0;
  }
  carried.num_inputs = subgraph.inputs() == nullptr ? 0 : static_cast<int>(subgraph.inputs()->size());
  carried.num_outputs = subgraph.outputs() == nullptr ? 0 : static_cast<int>(subgraph.outputs()->size());
  PF_ASSIGN_OR_RETURN(const int num_outputs, NumOutputs(node));
  if (carried.num_inputs != node.num_data_inputs() || carried.num_outputs != num_outputs ||
      static_cast<uint64_t>(carried.num_inputs) + static_cast<uint64_t>(carried.num_outputs) > num_tensors) {
    return invalid(absl::StrCat("found ", carried.num_inputs, " inputs and ", carried.num_outputs,
                                " outputs, expected ", node.num_data_inputs(), " and ", num_outputs));
  }
  for (const auto& tensor : carried.tensors) {
    const tflite::BlockwiseQuantizationT* blocks = BlocksOf(tensor.get());
    if (blocks == nullptr) continue;
    for (const int32_t i : {blocks->scales, blocks->zero_points}) {
      if (i >= static_cast<int32_t>(num_tensors)) return invalid("scales of blocks are no tensor");
    }
  }
  return carried;
}

void StoreCarried(const CarriedOperator& carried, Node* node) {
  node->SetAttr(kModelAttr, AttrValue::String(Encoded(carried)));
}

std::vector<int> CalledSubgraphs(const tflite::OperatorT& op) {
  if (const auto* call = op.builtin_options.AsIfOptions()) {
    return {call->then_subgraph_index, call->else_subgraph_index};
  }
  if (const auto* call = op.builtin_options.AsWhileOptions()) {
    return {call->cond_subgraph_index, call->body_subgraph_index};
  }
  if (const auto* call = op.builtin_options.AsCallOnceOptions()) return {call->init_subgraph_index};
  const tflite::BuiltinOptions2Union& options = op.builtin_options_2;
  if (const auto* call = options.AsStablehloCustomCallOptions()) return call->called_computations;
  if (const auto* call = options.AsStablehloReduceOptions()) return {call->body_subgraph_index};
  if (const auto* call = options.AsStablehloScatterOptions()) return {call->update_computation_subgraph_index};
  if (const auto* call = options.AsStablehloReduceWindowOptions()) return {call->body_subgraph_index};
  if (const auto* call = options.AsStablehloSortOptions()) return {call->comparator_subgraph_index};
  if (const auto* call = options.AsStablehloWhileOptions()) {
    return {call->cond_subgraph_index, call->body_subgraph_index};
  }
  if (const auto* call = options.AsStableHLOCompositeOptions()) return {call->decomposition_subgraph_index};
  if (const auto* call = options.AsStablehloCaseOptions()) return call->branch_subgraph_indices;
  return {};
}

absl::StatusOr<bool> CarriesCalls(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!IsCarried(node->op())) continue;
    PF_ASSIGN_OR_RETURN(const CarriedOperator carried, ReadCarried(*node));
    if (!CalledSubgraphs(carried.op).empty()) return true;
  }
  return false;
}

absl::Status CarriedOperatorMaker::Take(uint64_t bytes) {
  const uint64_t limit = kFileFactor * container_->file().bytes.size() + kLeastBytes;
  if (bytes > limit - described_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("the descriptions of operators exceed ", limit,
                                                     " bytes, the limit for a file of ",
                                                     container_->file().bytes.size(), " bytes"));
  }
  described_bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<TensorRef> CarriedOperatorMaker::ConstantOf(int i, Node* position) {
  const auto found = constants_.find(i);
  if (found != constants_.end()) return found->second;
  const tflite::Tensor& tensor = container_->tensor(subgraph_, i);
  absl::StatusOr<Tensor> value = container_->Stored(tensor);
  PF_RETURN_IF_ERROR(Annotate(value.status(), absl::StrCat("tensor ", i)));
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddConst(graph_->UniqueName(absl::StrCat("tflite_constant_", i)),
                                                    *std::move(value), position));
  constants_.emplace(i, TensorRef{node, 0});
  return TensorRef{node, 0};
}

absl::StatusOr<Node*> CarriedOperatorMaker::Add(const tflite::Operator& op, absl::string_view name, Node* position,
                                                const std::function<absl::StatusOr<TensorRef>(int tensor)>& value_of) {
  CarriedOperator carried;
  const tflite::OperatorCode& code = *container_->model().operator_codes()->Get(op.opcode_index());
  PF_RETURN_IF_ERROR(Take(BytesOf(code.custom_code())));
  code.UnPackTo(&carried.code);
  op.UnPackTo(&carried.op);
  carried.op.opcode_index = 0;
  if (op.large_custom_options_offset() > 1) {
    PF_ASSIGN_OR_RETURN(const absl::string_view bytes,
                        container_->BytesAt(op.large_custom_options_offset(), op.large_custom_options_size()));
    carried.op.custom_options.assign(bytes.begin(), bytes.end());
    carried.op.large_custom_options_offset = carried.op.large_custom_options_size = 0;
  }
  std::vector<TensorRef> inputs;
  const auto add = [&](int tensor) -> absl::Status {
    PF_RETURN_IF_ERROR(Take(DescriptionBytes(container_->tensor(subgraph_, tensor))));
    carried.tensors.emplace_back(container_->tensor(subgraph_, tensor).UnPack());
    carried.tensors.back()->buffer = 0;
    return absl::OkStatus();
  };
  const auto add_input = [&](int tensor) -> absl::Status {
    absl::StatusOr<TensorRef> value =
        container_->IsConstantOperand(subgraph_, tensor) ? ConstantOf(tensor, position) : value_of(tensor);
    PF_RETURN_IF_ERROR(value.status());
    inputs.push_back(*value);
    return add(tensor);
  };
  // Data inputs come first, so the numbers of states are set when the numbers of inputs and outputs are known.
  constexpr int32_t kLater = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> states;
  std::vector<int64_t> positions;
  for (size_t k = 0; k < carried.op.inputs.size(); ++k) {
    int32_t& operand = carried.op.inputs[k];
    if (operand < 0) continue;
    // A variable tensor without a value is a state. Others are fed or computed in spite of their mark.
    if (container_->tensor(subgraph_, operand).is_variable() && !value_of(operand).ok()) {
      states.push_back(operand);
      operand = kLater;
      continue;
    }
    PF_RETURN_IF_ERROR(add_input(operand));
    operand = static_cast<int32_t>(inputs.size()) - 1;
    positions.push_back(static_cast<int64_t>(k));
  }
  // Tensors that hold the scales of blocks.
  const auto num_tensors = static_cast<int64_t>(container_->subgraph(subgraph_).tensors()->size());
  for (size_t i = 0, count = carried.tensors.size(); i < count; ++i) {
    tflite::BlockwiseQuantizationT* blocks = BlocksOf(carried.tensors[i].get());
    if (blocks == nullptr) continue;
    for (int32_t* index : {&blocks->scales, &blocks->zero_points}) {
      const int32_t tensor = *index;
      // 0 is the default of `zero_points` and means none.
      if (tensor < 0 || (index == &blocks->zero_points && tensor == 0)) continue;
      if (tensor >= num_tensors) {
        return absl::InvalidArgumentError(
            absl::StrCat("scales of blocks: found tensor ", tensor, ", expected less than ", num_tensors));
      }
      if (!container_->IsConstantOperand(subgraph_, tensor)) {
        return absl::UnimplementedError("has scales of blocks that are no constant");
      }
      PF_RETURN_IF_ERROR(add_input(tensor));
      *index = static_cast<int32_t>(inputs.size()) - 1;
    }
  }
  carried.num_inputs = static_cast<int>(inputs.size());
  carried.num_outputs = static_cast<int>(carried.op.outputs.size());
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (int32_t& output : carried.op.outputs) {
    const tflite::Tensor& tensor = container_->tensor(subgraph_, output);
    const DType dtype = DTypeOfTflite(tensor.type());
    types.push_back(dtype == DType::kInvalid ? DType::kVariant : dtype);
    // Stored shapes of computed tensors are hints. Without `has_rank`, an empty one may be unknown.
    absl::StatusOr<Shape> shape = OpenShapeOfTflite(tensor);
    PF_RETURN_IF_ERROR(Annotate(shape.status(), absl::StrCat("tensor ", output)));
    shapes.push_back(shape->rank() == 0 && !tensor.has_rank() ? Shape::UnknownRank() : *std::move(shape));
    PF_RETURN_IF_ERROR(add(output));
    output = static_cast<int32_t>(carried.tensors.size()) - 1;
  }
  size_t next_state = 0;
  for (int32_t& operand : carried.op.inputs) {
    if (operand != kLater) continue;
    PF_RETURN_IF_ERROR(add(states[next_state++]));
    operand = static_cast<int32_t>(carried.tensors.size()) - 1;
  }
  for (int32_t& tensor : carried.op.intermediates) {
    if (tensor < 0) continue;
    PF_RETURN_IF_ERROR(add(tensor));
    tensor = static_cast<int32_t>(carried.tensors.size()) - 1;
  }

  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(name, CarriedOp(*container_, op), position));
  std::vector<DType> input_types;
  for (const TensorRef& input : inputs) {
    PF_ASSIGN_OR_RETURN(const std::vector<DType> outputs, OutputTypes(*input.node));
    if (static_cast<size_t>(input.port) >= outputs.size()) {
      return absl::InternalError(absl::StrCat(input.node->Describe(), " has no output ", input.port));
    }
    input_types.push_back(outputs[static_cast<size_t>(input.port)]);
    graph_->AddInput(node, input);
  }
  node->SetAttr("Tin", AttrValue::TypeList(input_types));
  node->SetAttr("Tout", AttrValue::TypeList(types));
  node->SetAttr("output_shapes", AttrValue::ShapeList(shapes));
  const std::string model = Encoded(carried);
  PF_RETURN_IF_ERROR(Take(model.size()));
  node->SetAttr(kModelAttr, AttrValue::String(model));
  node->SetAttr(kOperandsAttr, AttrValue::IntList(positions));
  const std::vector<uint8_t>& options = carried.op.custom_options;
  if (!options.empty()) {
    PF_RETURN_IF_ERROR(Take(options.size()));
    const absl::string_view bytes(reinterpret_cast<const char*>(options.data()), options.size());
    node->SetAttr(kCustomOptionsAttr, AttrValue::String(bytes));
  }
  return node;
}

}  // namespace permafrost
