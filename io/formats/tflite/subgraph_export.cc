// Implements the selection of operators and the encoding of the FlatBuffer.
#include "io/formats/tflite/subgraph_export.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/analysis/order.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "graph/validation/validate.h"
#include "io/formats/tflite/archive.h"
#include "io/formats/tflite/export_custom.h"
#include "io/formats/tflite/flex.h"
#include "io/formats/tflite/forms.h"
#include "io/formats/tflite/provenance.h"

namespace permafrost {
namespace {

using tflite::ActivationFunctionType;

// Further problems are counted but not listed.
constexpr size_t kMostProblems = 100;
// Alignment of the bytes of a buffer, which the schema demands.
constexpr uint64_t kAlignment = 16;
// The size of the value of `min_runtime_version`, which TensorFlow's converter pads with zeros.
constexpr size_t kRuntimeBytes = 16;
// Numbers of operators from here on are not in the field of one byte (see the schema's OperatorCode).
constexpr int kByteCodes = 127;
// Maximum number of subgraphs: far more than models have, and a limit on functions that call each other with ever new
// shapes.
constexpr size_t kMostSubgraphs = 10'000;
// Bytes of the FlatBuffer for a buffer or an operator code, apart from its content: table, vtable, offset and padding.
constexpr uint64_t kTableBytes = 64;

uint64_t AlignUp(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

// Compares "2.3" and "1.14" by numbers.
bool IsNewer(absl::string_view a, absl::string_view b) {
  const std::vector<absl::string_view> x = absl::StrSplit(a, '.'), y = absl::StrSplit(b, '.');
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    int p = 0, q = 0;
    if (i < x.size() && !absl::SimpleAtoi(x[i], &p)) return false;
    if (i < y.size() && !absl::SimpleAtoi(y[i], &q)) return false;
    if (p != q) return p > q;
  }
  return false;
}

// Encodes strings as the count, the offsets of the strings and of the end, and the characters.
std::string EncodedStrings(const std::vector<std::string>& strings) {
  std::string bytes;
  const auto append = [&bytes](uint64_t value) {
    const uint32_t word = static_cast<uint32_t>(value);
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  };
  append(strings.size());
  uint64_t at = 4 * (strings.size() + 2);
  for (const std::string& text : strings) {
    append(at);
    at += text.size();
  }
  append(at);
  for (const std::string& text : strings) bytes += text;
  return bytes;
}

// Passes that change nodes which have no form.
struct WayOutOfOp {
  Op op;
  absl::string_view text;
};
constexpr WayOutOfOp kWaysOut[] = {
    {ops::kPlaceholder, "declare it as an input"},
    {ops::kFusedBatchNorm, "run fold_old_batch_norms or lower_to_tflite"},
    {ops::kFusedBatchNormV2, "run fold_old_batch_norms or lower_to_tflite"},
    {ops::kFusedBatchNormV3, "run fold_old_batch_norms or lower_to_tflite"},
    {ops::k_FusedConv2D, "run defuse_ops"},
    {ops::k_FusedDepthwiseConv2dNative, "run defuse_ops"},
    {ops::k_FusedMatMul, "run defuse_ops"},
    {ops::kPartitionedCall, "run inline_partitionedcall"},
    {ops::kStatefulPartitionedCall, "run inline_partitionedcall"},
    {ops::kCase, "run lower_to_tflite"},
    {ops::kStatelessCase, "run lower_to_tflite"},
    {ops::kAssignAddVariableOp, "run lower_to_tflite"},
    {ops::kAssignSubVariableOp, "run lower_to_tflite"},
};

absl::string_view WayOutOf(Op op) {
  for (const WayOutOfOp& way_out : kWaysOut) {
    if (way_out.op == op) return way_out.text;
  }
  return "";
}

bool Forwards(Op op) {
  return op == ops::kIdentity || op == ops::kIdentityN || op == ops::kStopGradient || op == ops::kPreventGradient ||
         op == ops::kCheckNumerics || op == ops::kSnapshot || op == ops::k_Retval;
}

// True for an addition that may be that of a bias to the last dimension.
bool IsChannelAddition(const Node& node) {
  if (node.num_data_inputs() != 2) return false;
  if (node.op() == ops::kAdd || node.op() == ops::kAddV2) return true;
  if (node.op() != ops::kBiasAdd) return false;
  const absl::StatusOr<std::string> format = StringAttr(node, "data_format");
  return !format.ok() || *format == "NHWC";
}

// True for an operator that is written although nothing reads its results: it may change a variable or table.
bool HasEffect(const Node& node) {
  if (node.op() == ops::kWhile || node.op() == ops::kIf) return true;
  const OpSchema* schema = FindSchema(node.op());
  return schema != nullptr && schema->Is(kHasSideEffect) && !schema->inputs.empty() &&
         schema->inputs[0].type == DType::kResource;
}

ActivationFunctionType ActivationOf(const Node& node, TensorRef* x) {
  if (node.num_data_inputs() == 1) *x = node.input(0);
  if (node.op() == ops::kRelu) return ActivationFunctionType::RELU;
  if (node.op() == ops::kRelu6) return ActivationFunctionType::RELU6;
  if (IsClamp(node, -1, 1, x)) return ActivationFunctionType::RELU_N1_TO_1;
  return ActivationFunctionType::NONE;
}

}  // namespace

uint32_t ModelExport::BufferOf(absl::string_view bytes, Owner owner) {
  const auto [found, is_new] = buffer_of_.try_emplace(bytes, static_cast<uint32_t>(buffers_.size()));
  if (is_new) buffers_.push_back({bytes, std::move(owner)});
  return found->second;
}

absl::StatusOr<int32_t> ModelExport::SubgraphOf(const FunctionRef& function, std::vector<Shape> args) {
  std::string key = AttrValue::Function(function).Encoded();
  for (const Shape& shape : args) absl::StrAppend(&key, ";", shape.ToString());
  const auto found = subgraph_of_.find(key);
  if (found != subgraph_of_.end()) return found->second;
  if (callees_.size() >= kMostSubgraphs) {
    return absl::InvalidArgumentError(absl::StrCat("needs more than ", kMostSubgraphs, " subgraphs"));
  }
  if (const absl::Status order = library_.CallOrder({function.name}).status(); !order.ok()) {
    return absl::UnimplementedError(order.message());
  }
  absl::StatusOr<std::unique_ptr<Graph>> body = library_.Instantiate(function);
  if (!body.ok()) return absl::UnimplementedError(body.status().message());
  if (ArgsOf(**body).size() != args.size()) {
    return absl::InvalidArgumentError(absl::StrCat("calls function '", function.name, "' with ", args.size(),
                                                   " arguments, expected ", ArgsOf(**body).size()));
  }
  callees_.push_back(std::make_unique<Callee>(Callee{function.name, std::move(args), *std::move(body)}));
  const auto index = static_cast<int32_t>(first_callee_ + callees_.size()) - 1;
  subgraph_of_.emplace(std::move(key), index);
  return index;
}

namespace {

std::string ResourceName(const Node& node) {
  std::string name = StringAttr(node, "shared_name").value_or("");
  if (name.empty()) name = std::string(node.name());
  const std::string container = StringAttr(node, "container").value_or("");
  return container.empty() ? name : absl::StrCat(container, "/", name);
}

}  // namespace

std::string ModelExport::UseResource(const Node& node) {
  std::string name = ResourceName(node);
  resources_.insert(name);
  return name;
}

std::vector<Node*> ModelExport::Initializers() {
  std::vector<Node*> initializers;
  const auto add = [&](Node* node) {
    const Node& resource = *node->input(0).node;
    if (!resources_.contains(ResourceName(resource))) return;
    for (int i = 1; i < node->num_data_inputs(); ++i) {
      if (ConstantBehind(node->input(i)) != nullptr) continue;
      AddProblem(absl::StrCat(node->Describe(), " initialises ", resource.Describe(), " with ",
                              node->input(i).node->Describe(), ", expected a constant"));
      return;
    }
    initializers.push_back(node);
  };
  for (Node* node : VariableInitializers(graph_)) add(node);
  for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
    if (FillsTable(node->op()) && node->num_data_inputs() > 1 && IsTable(node->input(0).node->op())) add(node);
  }
  return initializers;
}

uint32_t ModelExport::OperatorCode(tflite::BuiltinOperator op, int version, absl::string_view custom_name) {
  const Code code{op, version, std::string(custom_name)};
  const auto found = std::find(codes_.begin(), codes_.end(), code);
  const auto index = static_cast<uint32_t>(found - codes_.begin());
  if (found == codes_.end()) codes_.push_back(code);
  return index;
}

void ModelExport::RequireRuntime(absl::string_view runtime) {
  if (IsNewer(runtime, runtime_)) runtime_ = std::string(runtime);
}

absl::Status ModelExport::Problems() const {
  if (problems_.empty()) return absl::OkStatus();
  std::string text = absl::StrJoin(absl::MakeConstSpan(problems_).subspan(0, kMostProblems), "; ");
  if (problems_.size() > kMostProblems) {
    absl::StrAppend(&text, "; and ", problems_.size() - kMostProblems, " more");
  }
  return absl::UnimplementedError(absl::StrCat(problems_.size(), problems_.size() == 1 ? " node has" : " nodes have",
                                               " no form in TensorFlow Lite: ", text,
                                               may_flex_ ? "; --allow_flex writes TensorFlow's ops as they are" : ""));
}

absl::Status ModelExport::Write(std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs,
                                std::vector<flatbuffers::Offset<tflite::SignatureDef>> signatures,
                                const TfliteLimits& limits, ByteSink* sink) {
  // Texts such as "2.3" are versions of releases: "2.3.0".
  auto runtime = std::make_shared<std::string>(runtime_);
  if (std::count(runtime->begin(), runtime->end(), '.') == 1) absl::StrAppend(runtime.get(), ".0");
  runtime->resize(kRuntimeBytes, '\0');
  std::vector<flatbuffers::Offset<tflite::Metadata>> metadata = {
      tflite::CreateMetadata(builder_, builder_.CreateString("min_runtime_version"), BufferOf(*runtime, runtime))};
  for (const auto& [name, buffer] : metadata_) {
    metadata.push_back(tflite::CreateMetadata(builder_, builder_.CreateString(name), buffer));
  }

  std::vector<flatbuffers::Offset<tflite::OperatorCode>> codes;
  for (const Code& code : codes_) {
    const int number = static_cast<int>(code.op);
    flatbuffers::Offset<flatbuffers::String> custom_name;
    if (!code.custom_name.empty()) custom_name = builder_.CreateString(code.custom_name);
    codes.push_back(tflite::CreateOperatorCode(builder_, static_cast<int8_t>(std::min(number, kByteCodes)), custom_name,
                                               code.version, code.op));
  }
  uint64_t content_bytes = 0;
  for (const Content& content : buffers_) content_bytes += AlignUp(content.bytes.size() + sizeof(uint32_t));
  const uint64_t head_bound = builder_.GetSize() + kTableBytes * (buffers_.size() + subgraphs.size() + 16);
  if (head_bound > limits.max_flatbuffer_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the model takes ", head_bound, " bytes without its constants, ",
                                                   "expected at most ", limits.max_flatbuffer_bytes));
  }
  const bool is_inside = head_bound + content_bytes <= limits.max_flatbuffer_bytes;

  // The bytes of buffers follow the rest of the FlatBuffer. Offsets to them are set afterwards.
  const auto placeholder = builder_.CreateVector(std::vector<uint8_t>());
  std::vector<flatbuffers::Offset<tflite::Buffer>> buffers;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (i == 0) {
      buffers.push_back(tflite::CreateBuffer(builder_));
    } else if (is_inside) {
      buffers.push_back(tflite::CreateBuffer(builder_, placeholder));
    } else {
      // 1 stands for an offset that is not known yet; 0 would not be stored.
      buffers.push_back(tflite::CreateBuffer(builder_, 0, 1, buffers_[i].bytes.size()));
    }
  }
  const auto buffers_offset = builder_.CreateVector(buffers);
  const auto codes_offset = builder_.CreateVector(codes);
  const auto subgraphs_offset = builder_.CreateVector(subgraphs);
  const auto signatures_offset = builder_.CreateVector(signatures);
  const auto metadata_offset = builder_.CreateVector(metadata);
  const auto description = builder_.CreateString(description_);
  constexpr uint32_t kSchemaVersion = 3;
  tflite::FinishModelBuffer(builder_,
                            tflite::CreateModel(builder_, kSchemaVersion, codes_offset, subgraphs_offset, description,
                                                buffers_offset, 0, metadata_offset, signatures_offset));

  uint8_t* const head = builder_.GetBufferPointer();
  const uint64_t head_bytes = builder_.GetSize();
  const auto* tables = tflite::GetModel(head)->buffers();
  std::vector<uint64_t> starts(buffers_.size(), 0);
  uint64_t at = head_bytes;
  for (uint32_t i = 1; i < tables->size(); ++i) {
    const tflite::Buffer* table = tables->Get(i);
    const auto field_of = [table](flatbuffers::voffset_t field) {
      const auto* position = reinterpret_cast<const uint8_t*>(table) +
                             reinterpret_cast<const flatbuffers::Table*>(table)->GetOptionalFieldOffset(field);
      return const_cast<uint8_t*>(position);
    };
    starts[i] = AlignUp(at + (is_inside ? sizeof(uint32_t) : 0));
    if (is_inside) {
      uint8_t* const field = field_of(tflite::Buffer::VT_DATA);
      flatbuffers::WriteScalar(field, static_cast<flatbuffers::uoffset_t>(starts[i] - sizeof(uint32_t) -
                                                                          static_cast<uint64_t>(field - head)));
    } else {
      flatbuffers::WriteScalar(field_of(tflite::Buffer::VT_OFFSET), starts[i]);
    }
    at = starts[i] + buffers_[i].bytes.size();
  }
  PF_RETURN_IF_ERROR(sink->Append(absl::string_view(reinterpret_cast<const char*>(head), head_bytes)));
  at = head_bytes;
  static constexpr char kZeros[2 * kAlignment] = {};
  for (size_t i = 1; i < buffers_.size(); ++i) {
    const absl::string_view bytes = buffers_[i].bytes;
    const uint64_t padding = starts[i] - at - (is_inside ? sizeof(uint32_t) : 0);
    PF_RETURN_IF_ERROR(sink->Append(absl::string_view(kZeros, padding)));
    if (is_inside) {
      char length[sizeof(uint32_t)];
      flatbuffers::WriteScalar(length, static_cast<uint32_t>(bytes.size()));
      PF_RETURN_IF_ERROR(sink->Append(absl::string_view(length, sizeof(length))));
    }
    PF_RETURN_IF_ERROR(sink->Append(bytes));
    at = starts[i] + bytes.size();
    // Constants with a layout of their own, which are often all of a model, are freed as they are written.
    buffers_[i].owner.reset();
  }
  // XNNPACK reads up to 16 bytes beyond a constant.
  if (!is_inside) {
    PF_RETURN_IF_ERROR(sink->Append(absl::string_view(kZeros, kAlignment)));
    at += kAlignment;
  }
  if (archive_.empty()) return absl::OkStatus();
  return sink->Append(MovedArchive(archive_, archive_origin_, at));
}

bool SubgraphExport::IsFed(TensorRef ref) const {
  if (!graph_.IsInput(ref.node)) return false;
  return std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                     [&](const Endpoint& input) { return input.node == ref.node && input.port == ref.port; });
}

TensorRef SubgraphExport::Resolve(TensorRef ref) const {
  while (!IsFed(ref) && Forwards(ref.node->op()) && ref.port < ref.node->num_data_inputs()) {
    ref = ref.node->input(ref.port);
  }
  return ref;
}

int SubgraphExport::NumReaders(const Node& node) const {
  int count = 0;
  for (const Use& use : node.uses()) {
    const Node& reader = *use.consumer;
    if (!reader.input(static_cast<int>(use.index)).is_control() && is_needed_[reader.id()]) ++count;
  }
  return count;
}

int32_t SubgraphExport::AddTensor(absl::string_view name, DType dtype, const Shape& shape) {
  tensors_.push_back({std::string(name), dtype, shape, Tensor(), nullptr, std::nullopt});
  return static_cast<int32_t>(tensors_.size()) - 1;
}

int32_t SubgraphExport::AddConstant(Tensor value, absl::string_view name) {
  const int32_t index = AddTensor(name, value.dtype(), value.shape());
  tensors_.back().value = std::move(value);
  return index;
}

int32_t SubgraphExport::TensorOf(TensorRef unresolved) {
  const TensorRef ref = Resolve(unresolved);
  const auto found = tensor_of_.find(ref);
  if (found != tensor_of_.end()) return found->second;
  const auto declared = output_name_.find(ref);
  const std::string name = declared == output_name_.end() ? ref.ToString() : declared->second;
  int32_t index = -1;
  if (ref.node->op() == ops::kConst && !IsFed(ref)) {
    if (absl::StatusOr<Tensor> value = ConstValue(*ref.node); value.ok()) {
      index = AddConstant(*std::move(value), name);
    } else {
      model_->AddProblem(std::string(value.status().message()));
    }
  }
  if (index < 0) {
    // The types of an unknown op are unknown, too, but then the node itself is reported.
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*ref.node);
    const bool is_typed = types.ok() && ref.port >= 0 && static_cast<size_t>(ref.port) < types->size();
    index = AddTensor(name, is_typed ? (*types)[static_cast<size_t>(ref.port)] : DType::kInvalid, shapes_.Of(ref));
  }
  if (const UniformScales* scales = quantized_.ScalesOf(ref); scales != nullptr) {
    tensors_[static_cast<size_t>(index)].scales = *scales;
  }
  tensor_of_.emplace(ref, index);
  return index;
}

absl::StatusOr<int32_t> SubgraphExport::Integers(TensorRef ref, std::vector<ExportedOperator>* conversions) {
  const int32_t source = TensorOf(ref);
  const TensorRecord record = tensors_[static_cast<size_t>(source)];
  if (record.dtype == DType::kInt32 || record.dtype == DType::kInvalid) return source;
  if (record.dtype != DType::kInt64) {
    return absl::UnimplementedError(
        absl::StrCat("reads '", record.name, "' of type ", DTypeName(record.dtype), ", expected int32 or int64"));
  }
  if (record.value.dtype() == DType::kInt64) {
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, IntegerValues(record.value));
    std::vector<int32_t> values;
    for (const int64_t value : numbers) {
      values.push_back(static_cast<int32_t>(
          std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())));
    }
    return AddConstant(Tensor::FromVector(record.value.shape(), std::move(values)), record.name);
  }
  ExportedOperator cast;
  cast.op = tflite::BuiltinOperator::CAST;
  cast.inputs = {source};
  cast.outputs = {AddTensor(absl::StrCat(record.name, "/int32"), DType::kInt32, record.shape)};
  const auto options =
      tflite::CreateCastOptions(model_->builder(), tflite::TensorType::INT64, tflite::TensorType::INT32);
  cast.options_type = tflite::BuiltinOptions::CastOptions;
  cast.options = options.Union();
  conversions->push_back(cast);
  return conversions->back().outputs[0];
}

ExportedOperator SubgraphExport::Reshaped(int32_t from, int32_t to, const Shape& shape) {
  std::vector<int32_t> dims;
  for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) dims.push_back(static_cast<int32_t>(shape.dim(i)));
  const auto count = static_cast<int64_t>(dims.size());
  ExportedOperator reshape;
  reshape.op = tflite::BuiltinOperator::RESHAPE;
  const std::string name = absl::StrCat(tensors_[static_cast<size_t>(to)].name, "/shape");
  reshape.inputs = {from, AddConstant(Tensor::FromVector(Shape({count}), std::move(dims)), name)};
  reshape.outputs = {to};
  reshape.options_type = tflite::BuiltinOptions::ReshapeOptions;
  reshape.options = tflite::CreateReshapeOptions(model_->builder()).Union();
  return reshape;
}

absl::StatusOr<int32_t> SubgraphExport::Position(TensorRef ref, int rank, std::vector<ExportedOperator>* conversions) {
  std::vector<ExportedOperator> casts;
  PF_ASSIGN_OR_RETURN(const int32_t number, Integers(ref, &casts));
  const std::string name = tensors_[static_cast<size_t>(number)].name;
  const int32_t vector = AddTensor(absl::StrCat(name, "/vector"), DType::kInt32, Shape({1}));
  const int32_t position = AddTensor(absl::StrCat(name, "/position"), DType::kInt32, Shape({rank}));
  ExportedOperator pad;
  pad.op = tflite::BuiltinOperator::PAD;
  pad.inputs = {vector, AddConstant(Tensor::FromVector(Shape({1, 2}), std::vector<int32_t>{0, rank - 1}),
                                    absl::StrCat(name, "/paddings"))};
  pad.outputs = {position};
  pad.options_type = tflite::BuiltinOptions::PadOptions;
  pad.options = tflite::CreatePadOptions(model_->builder()).Union();
  // The last first.
  conversions->push_back(std::move(pad));
  conversions->push_back(Reshaped(number, vector, Shape({1})));
  for (ExportedOperator& cast : casts) conversions->push_back(std::move(cast));
  return position;
}

int32_t SubgraphExport::Dequantized(Tensor value, absl::string_view name, std::vector<ExportedOperator>* conversions) {
  // Version of DEQUANTIZE that converts half.
  constexpr int kHalfVersion = 3;
  const Shape shape = value.shape();
  ExportedOperator dequantize;
  dequantize.op = tflite::BuiltinOperator::DEQUANTIZE;
  dequantize.version = kHalfVersion;
  dequantize.inputs = {AddConstant(std::move(value), absl::StrCat(name, "/half"))};
  dequantize.outputs = {AddTensor(name, DType::kFloat, shape)};
  dequantize.options_type = tflite::BuiltinOptions::DequantizeOptions;
  dequantize.options = tflite::CreateDequantizeOptions(model_->builder()).Union();
  model_->RequireRuntime("1.15");  // That of the version.
  conversions->push_back(dequantize);
  return conversions->back().outputs[0];
}

absl::Status SubgraphExport::TryRow(const OperatorRow& row, OperatorExport op) {
  const OperatorForm& form = row.form;
  op.form_ = &form;
  op.exported_.op = row.op;
  const int typed = TypedOperand(form);
  if (typed >= op.num_inputs() && !form.types.empty()) {
    return absl::UnimplementedError(absl::StrCat("has ", op.num_inputs(), " inputs, expected more"));
  }
  if (op.end_ != nullptr && !op.is_dynamic_) {
    PF_ASSIGN_OR_RETURN(const DType codes, quantized_.TypeOfCodes(*op.end_));
    PF_ASSIGN_OR_RETURN(const int version, VersionForCodes(form, codes));
    op.RequireVersion(version);
  } else if (typed < op.num_inputs() && op.end_ == nullptr && quantized_.ScalesOf(Resolve(op.input(typed)))) {
    // Moves codes.
    PF_ASSIGN_OR_RETURN(const DType codes, op.TypeOf(op.input(typed)));
    PF_ASSIGN_OR_RETURN(const int version, VersionForCodes(form, codes));
    op.RequireVersion(version);
  } else if (!form.types.empty()) {
    const absl::StatusOr<DType> dtype = op.TypeOf(op.input(typed));
    if (absl::IsNotFound(dtype.status())) {
      return absl::UnimplementedError(absl::StrCat("reads ", op.input(typed).node->Describe(), " of unknown type"));
    }
    PF_RETURN_IF_ERROR(dtype.status());
    PF_ASSIGN_OR_RETURN(const int version, VersionFor(form, *dtype));
    op.RequireVersion(version);
  }
  PF_RETURN_IF_ERROR(form.write(&op));
  ExportedOperator& exported = op.exported_;
  PF_ASSIGN_OR_RETURN(const absl::string_view runtime, RuntimeOf(form, exported.version));
  std::vector<ExportedOperator> conversions;
  for (const OperatorExport::Operand& operand : op.operands_) {
    switch (operand.kind) {
      case OperatorExport::Operand::kTensor:
        if (op.end_ != nullptr && !op.is_dynamic_) {
          PF_ASSIGN_OR_RETURN(const int32_t tensor, CodesOf(operand.ref, &conversions));
          exported.inputs.push_back(tensor);
        } else {
          exported.inputs.push_back(TensorOf(operand.ref));
        }
        break;
      case OperatorExport::Operand::kIntegers: {
        PF_ASSIGN_OR_RETURN(const int32_t tensor, Integers(operand.ref, &conversions));
        exported.inputs.push_back(tensor);
        break;
      }
      case OperatorExport::Operand::kWeight:
        if (operand.value.dtype() == DType::kHalf) {
          exported.inputs.push_back(Dequantized(
              operand.value, absl::StrCat(op.node().name(), "/operand_", exported.inputs.size()), &conversions));
          break;
        }
        [[fallthrough]];
      case OperatorExport::Operand::kConstant:
        exported.inputs.push_back(
            AddConstant(operand.value, absl::StrCat(op.node().name(), "/operand_", exported.inputs.size())));
        tensors_.back().scales = operand.scales;
        break;
      case OperatorExport::Operand::kOmitted:
        exported.inputs.push_back(-1);
        break;
      case OperatorExport::Operand::kPosition: {
        PF_ASSIGN_OR_RETURN(const int32_t tensor,
                            Position(operand.ref, operand.value.elements<int32_t>()[0], &conversions));
        exported.inputs.push_back(tensor);
        break;
      }
    }
  }
  if (op.end_ != nullptr) {
    exported.outputs.push_back(op.result_);
  } else {
    PF_ASSIGN_OR_RETURN(const int num_outputs, NumOutputs(*op.root_));
    const int count = row.num_outputs < 0 ? num_outputs : std::min(num_outputs, row.num_outputs);
    for (int port = 0; port < count; ++port) exported.outputs.push_back(TensorOf({op.root_, port}));
  }
  model_->RequireRuntime(runtime);
  if (op.inner_shape_.has_value() && !exported.outputs.empty()) {
    const int32_t result = exported.outputs[0];
    const TensorRecord record = tensors_[static_cast<size_t>(result)];
    exported.outputs[0] = AddTensor(absl::StrCat(record.name, "/inner"), record.dtype, *op.inner_shape_);
    operators_.push_back(Reshaped(exported.outputs[0], result, record.shape));
  }
  operators_.push_back(std::move(exported));
  // The list is in reverse order, so conversions that run before the operator follow it.
  for (ExportedOperator& conversion : conversions) operators_.push_back(std::move(conversion));
  return absl::OkStatus();
}

absl::Status SubgraphExport::TryForms(Node* node, Node* root, TensorRef bias, ActivationFunctionType activation,
                                      uint32_t traits, const QuantizedEnd& end) {
  absl::Status status = absl::UnimplementedError("");
  for (const OperatorRow* row : FormsOf(node->op())) {
    if ((row->form.traits & traits) != traits) continue;
    if ((row->form.traits & kComposed) != (traits & kComposed)) continue;
    OperatorExport op(this, node, root);
    op.set_bias(bias);
    op.set_activation(activation);
    op.end_ = end.end;
    op.is_dynamic_ = end.is_dynamic;
    op.result_ = end.result;
    status = TryRow(*row, std::move(op));
    if (!absl::IsUnimplemented(status)) return status;
    status =
        absl::UnimplementedError(absl::StrCat("as ", tflite::EnumNameBuiltinOperator(row->op), ": ", status.message()));
  }
  return status;
}

absl::Status SubgraphExport::SelectFlex(Node* node) {
  PF_ASSIGN_OR_RETURN(std::string options, FlexOptions(*node));
  if (!NumOutputs(*node).ok()) return absl::UnimplementedError("its number of outputs is not known");
  model_->NoteFlex();
  if (!model_->allow_flex()) return absl::UnimplementedError("Flex operators are not allowed");
  return SelectCustom(node, absl::StrCat(kFlexPrefix, node->op().name()), std::move(options));
}

absl::Status SubgraphExport::SelectCustom(Node* node, std::string name, std::string options) {
  PF_ASSIGN_OR_RETURN(const int num_outputs, NumOutputs(*node));
  ExportedOperator custom;
  custom.op = tflite::BuiltinOperator::CUSTOM;
  custom.custom_name = std::move(name);
  custom.custom_options = std::move(options);
  for (int i = 0; i < node->num_data_inputs(); ++i) custom.inputs.push_back(TensorOf(node->input(i)));
  for (int port = 0; port < num_outputs; ++port) custom.outputs.push_back(TensorOf({node, port}));
  operators_.push_back(std::move(custom));
  return absl::OkStatus();
}

absl::Status SubgraphExport::Select(Node* root, const QuantizedEnd& end) {
  if (end.end == nullptr && IsCarried(root->op())) return SelectCarried(root);
  if (end.end == nullptr && IsQuantizedEnd(*root)) return SelectQuantized(root);
  const ActivationFunctionType none = ActivationFunctionType::NONE;
  const auto is_inner = [&](TensorRef ref) {
    return ref.node != nullptr && ref.port == 0 && !graph_.IsEndpoint(ref.node) && NumReaders(*ref.node) == 1;
  };
  if (IsCustomOperator(root->op())) {
    PF_ASSIGN_OR_RETURN(std::string options, CustomOptions(*root));
    return SelectCustom(root, std::string(root->op().name()), std::move(options));
  }
  absl::Status status;
  // Peels off the activation, then the bias.
  TensorRef below;
  const ActivationFunctionType activation = ActivationOf(*root, &below);
  const uint32_t with_activation = activation == none ? uint32_t{0} : uint32_t{kTakesActivation};
  Node* biased = root;
  if (activation != none) biased = is_inner(below) ? below.node : nullptr;
  if (biased != nullptr && IsChannelAddition(*biased)) {
    for (const int side : {0, 1}) {
      const TensorRef base = biased->input(side), bias = biased->input(1 - side);
      if (!is_inner(base) || (end.end == nullptr && WeightBehind(bias) == nullptr)) continue;
      status = TryForms(base.node, root, bias, activation, kTakesBias | with_activation, end);
      if (!absl::IsUnimplemented(status)) return status;
    }
  }
  if (activation != none && biased != nullptr) {
    status = TryForms(biased, root, {}, activation, kTakesActivation, end);
    if (!absl::IsUnimplemented(status)) return status;
  }
  status = TryForms(root, root, {}, none, kComposed, end);
  if (!absl::IsUnimplemented(status)) return status;
  status = TryForms(root, root, {}, none, kPlain, end);
  if (!absl::IsUnimplemented(status)) return status;
  const absl::string_view way_out = WayOutOf(root->op());
  // A quantised operator has a result of codes, which the node itself has not.
  const absl::Status flex = end.end == nullptr ? SelectFlex(root) : absl::UnimplementedError("");
  if (!absl::IsUnimplemented(flex)) return flex;
  model_->AddProblem(absl::StrCat(root->Describe(), status.message().empty() ? "" : " ", status.message(),
                                  way_out.empty() ? "" : "; ", way_out));
  // Continues with the producers, so that their problems are reported, too.
  for (int i = 0; i < root->num_data_inputs(); ++i) TensorOf(root->input(i));
  return absl::OkStatus();
}

absl::Status SubgraphExport::Prepare(const std::vector<Node*>& roots, const ShapeInferenceOptions& options) {
  // Forms read inputs and attributes as the schemas of their ops have them.
  PF_RETURN_IF_ERROR(Validate(graph_));
  PF_ASSIGN_OR_RETURN(order_, StableTopologicalOrder(graph_));
  PF_ASSIGN_OR_RETURN(shapes_, InferShapes(graph_, options));
  PF_ASSIGN_OR_RETURN(quantized_, QuantizedTensors::Find(order_));
  std::vector<bool> stop(graph_.id_limit(), false);
  for (const Endpoint& input : graph_.inputs()) {
    if (input.node != nullptr) stop[input.node->id()] = true;
  }
  is_needed_ = ReachedBackwards(graph_, roots, stop);
  return absl::OkStatus();
}

absl::Status SubgraphExport::Run(const TfliteContainer* source, int entry) {
  if (graph_.outputs().empty()) {
    return absl::InvalidArgumentError("the graph declares no outputs, expected at least one");
  }
  std::vector<Node*> roots;
  for (const Endpoint& output : graph_.outputs()) roots.push_back(output.node);
  PF_RETURN_IF_ERROR(Prepare(roots, {}));
  for (const Endpoint& output : graph_.outputs()) {
    output_name_.emplace(Resolve({output.node, output.port}), output.text);
  }
  for (const Endpoint& input : graph_.inputs()) {
    if (input.node == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the graph has no node for the declared input '", input.text, "'"));
    }
    output_name_[{input.node, input.port}] = input.text;
    inputs_.push_back(TensorOf({input.node, input.port}));
  }
  for (const Endpoint& output : graph_.outputs()) outputs_.push_back(TensorOf({output.node, output.port}));
  if (source != nullptr) DescribeInterface(*source, entry);
  return SelectAll();
}

absl::Status SubgraphExport::RunBody(absl::Span<const Shape> args) {
  ShapeInferenceOptions options;
  const std::vector<Node*> arg_nodes = ArgsOf(graph_);
  for (size_t i = 0; i < arg_nodes.size() && i < args.size(); ++i) {
    options.fed.emplace(arg_nodes[i]->name(), args[i]);
  }
  std::vector<Node*> roots;
  for (const Endpoint& output : graph_.outputs()) roots.push_back(output.node);
  PF_RETURN_IF_ERROR(Prepare(roots, options));
  for (Node* arg : arg_nodes) inputs_.push_back(TensorOf({arg, 0}));
  for (const Node* result : RetvalsOf(graph_)) outputs_.push_back(TensorOf(result->input(0)));
  return SelectAll();
}

absl::Status SubgraphExport::RunInitializers(const std::vector<Node*>& nodes) {
  PF_RETURN_IF_ERROR(Prepare(nodes, {}));
  return SelectAll();
}

absl::Status SubgraphExport::SelectAll() {
  for (size_t i = order_.size(); i-- > 0;) {
    Node* node = order_[i];
    if (!is_needed_[node->id()] || node->op() == ops::kConst || node->op() == ops::kNoOp || Forwards(node->op())) {
      continue;
    }
    // A carried operator may have effects, which control inputs order.
    bool is_read = IsCarried(node->op());
    if (const absl::StatusOr<int> count = NumOutputs(*node); count.ok()) {
      for (int port = 0; port < *count; ++port) is_read |= !IsFed({node, port}) && tensor_of_.contains({node, port});
    } else {
      for (const Use& use : node->uses())
        is_read |= tensor_of_.contains(use.consumer->input(static_cast<int>(use.index)));
      is_read |= graph_.IsOutput(node);
    }
    if (!is_read && !(HasEffect(*node) && !graph_.IsInput(node))) continue;
    PF_RETURN_IF_ERROR(Annotate(Select(node, {}), node->Describe()));
  }
  std::reverse(operators_.begin(), operators_.end());
  return absl::OkStatus();
}

absl::Status SubgraphExport::CheckTensors() {
  for (const TensorRecord& tensor : tensors_) {
    const std::string place = absl::StrCat("tensor '", tensor.name, "'");
    if (tensor.kept != nullptr) continue;
    PF_RETURN_IF_ERROR(Annotate(TfliteTypeOf(tensor.dtype).status(), place));
    for (int i = 0; tensor.shape.has_rank() && i < tensor.shape.rank(); ++i) {
      if (tensor.shape.dim(i) > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(absl::StrCat(place, " has the shape ", tensor.shape.ToString(),
                                                       ", expected dimensions of at most 31 bits"));
      }
    }
    // The length of a vector in a FlatBuffer has 32 bits, and offsets have 31.
    if (tensor.value.bytes().size() > FLATBUFFERS_MAX_BUFFER_SIZE) {
      return absl::InvalidArgumentError(absl::StrCat(place, " has ", tensor.value.bytes().size(),
                                                     " bytes, expected at most ", FLATBUFFERS_MAX_BUFFER_SIZE));
    }
  }
  return absl::OkStatus();
}

flatbuffers::Offset<tflite::Tensor> SubgraphExport::EncodeTensor(const TensorRecord& tensor) {
  flatbuffers::FlatBufferBuilder& builder = model_->builder();
  uint32_t buffer = 0;
  const bool is_int4 = tensor.scales.has_value() && tensor.scales->has_four_bits;
  if (is_int4 && tensor.value.dtype() == DType::kInt8) {
    auto bytes = std::make_shared<std::string>(PackedInt4(tensor.value.bytes()));
    buffer = model_->BufferOf(*bytes, bytes);
  } else if (tensor.value.dtype() == DType::kString) {  // The encoded strings of a kept tensor are its value.
    auto bytes = std::make_shared<std::string>(EncodedStrings(tensor.value.strings()));
    buffer = model_->BufferOf(*bytes, bytes);
  } else if (tensor.value.dtype() != DType::kInvalid) {
    // The tensor keeps the bytes alive if they have no owner of their own.
    auto owner = std::make_shared<Tensor>(tensor.value);
    buffer = model_->BufferOf(owner->bytes(), owner);
  }
  if (tensor.kept != nullptr) {
    tflite::TensorT kept = *tensor.kept;
    kept.buffer = buffer;
    kept.external_buffer = 0;
    kept.name = tensor.name;
    return tflite::CreateTensor(builder, &kept);
  }
  std::vector<int32_t> shape, signature;
  bool is_open = false;
  for (int i = 0; tensor.shape.has_rank() && i < tensor.shape.rank(); ++i) {
    const int64_t dim = tensor.shape.dim(i);
    is_open |= dim < 0;
    shape.push_back(dim < 0 ? 1 : static_cast<int32_t>(dim));
    signature.push_back(static_cast<int32_t>(dim));
  }
  const auto name = builder.CreateString(tensor.name);
  const auto dims = builder.CreateVector(shape);
  flatbuffers::Offset<flatbuffers::Vector<int32_t>> open_dims;
  if (is_open) open_dims = builder.CreateVector(signature);
  const auto quantization = tensor.scales.has_value() ? EncodedScales(*tensor.scales, &builder) : 0;
  return tflite::CreateTensor(builder, dims, is_int4 ? tflite::TensorType::INT4 : *TfliteTypeOf(tensor.dtype), buffer,
                              name, quantization, false, 0, open_dims, tensor.shape.has_rank());
}

flatbuffers::Offset<tflite::SubGraph> SubgraphExport::Encode() {
  flatbuffers::FlatBufferBuilder& builder = model_->builder();
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  tensors.reserve(tensors_.size());
  for (const TensorRecord& tensor : tensors_) tensors.push_back(EncodeTensor(tensor));
  std::vector<flatbuffers::Offset<tflite::Operator>> operators;
  operators.reserve(operators_.size());
  for (const ExportedOperator& op : operators_) {
    if (op.carried != nullptr) {
      tflite::OperatorT kept = op.carried->op;
      kept.opcode_index =
          model_->OperatorCode(OperatorOf(op.carried->code), op.carried->code.version, op.carried->code.custom_code);
      operators.push_back(tflite::CreateOperator(builder, &kept));
      continue;
    }
    const auto inputs = builder.CreateVector(op.inputs);
    const auto outputs = builder.CreateVector(op.outputs);
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> custom_options;
    if (!op.custom_options.empty()) {
      custom_options =
          builder.CreateVector(reinterpret_cast<const uint8_t*>(op.custom_options.data()), op.custom_options.size());
    }
    const bool is_second = op.options_2_type != tflite::BuiltinOptions2::NONE;
    operators.push_back(tflite::CreateOperator(
        builder, model_->OperatorCode(op.op, op.version, op.custom_name), inputs, outputs, op.options_type,
        is_second ? flatbuffers::Offset<void>() : op.options, custom_options, tflite::CustomOptionsFormat::FLEXBUFFERS,
        0, 0, 0, 0, op.options_2_type, is_second ? op.options : flatbuffers::Offset<void>()));
  }
  const auto tensors_offset = builder.CreateVector(tensors);
  const auto inputs = builder.CreateVector(inputs_);
  const auto outputs = builder.CreateVector(outputs_);
  const auto operators_offset = builder.CreateVector(operators);
  return tflite::CreateSubGraph(builder, tensors_offset, inputs, outputs, operators_offset,
                                builder.CreateString(name_));
}

flatbuffers::Offset<tflite::SignatureDef> SubgraphExport::EncodeSignature(absl::string_view key, uint32_t subgraph) {
  flatbuffers::FlatBufferBuilder& builder = model_->builder();
  const auto maps = [&](const std::vector<Endpoint>& endpoints, const std::vector<int32_t>& tensors) {
    std::vector<flatbuffers::Offset<tflite::TensorMap>> entries;
    for (size_t i = 0; i < endpoints.size(); ++i) {
      entries.push_back(
          tflite::CreateTensorMap(builder, builder.CreateString(endpoints[i].text), static_cast<uint32_t>(tensors[i])));
    }
    return builder.CreateVector(entries);
  };
  const auto inputs = maps(graph_.inputs(), inputs_);
  const auto outputs = maps(graph_.outputs(), outputs_);
  return tflite::CreateSignatureDef(builder, inputs, outputs, builder.CreateString(key.data(), key.size()), subgraph);
}

absl::Status ExportTflite(const Graph& graph, const TfliteLimits& limits, ByteSink* sink) {
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(graph);
  std::optional<TfliteContainer> container;
  if (source != nullptr) {
    PF_ASSIGN_OR_RETURN(container, source->Open());
  }
  // Operators and signatures refer to subgraphs of the source by number, so all keep their numbers or none is copied.
  PF_ASSIGN_OR_RETURN(bool keeps_subgraphs, CarriesCalls(graph));
  if (keeps_subgraphs && source == nullptr) {
    return absl::InvalidArgumentError(
        "the graph has operators that call subgraphs of the file that they were read from, which is not known");
  }
  const int num_kept = source == nullptr ? 0 : static_cast<int>(container->model().subgraphs()->size());
  const int entry = source == nullptr ? 0 : source->entry();
  if (source != nullptr && container->model().signature_defs() != nullptr) {
    for (const auto* signature : *container->model().signature_defs()) {
      const auto index = static_cast<int64_t>(signature->subgraph_index());
      keeps_subgraphs |= index != entry && index < num_kept;
    }
  }

  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(graph));
  ModelExport model(graph, std::move(library), limits.allow_flex);
  if (keeps_subgraphs) model.SetFirstCallee(static_cast<size_t>(num_kept));
  std::vector<std::unique_ptr<SubgraphExport>> subgraphs;
  subgraphs.push_back(std::make_unique<SubgraphExport>(&model, graph, "main"));
  PF_RETURN_IF_ERROR(subgraphs[0]->Run(container.has_value() ? &*container : nullptr, entry));
  // Bodies may call further functions.
  for (size_t i = 0; i < model.callees().size(); ++i) {
    const ModelExport::Callee& callee = *model.callees()[i];
    subgraphs.push_back(std::make_unique<SubgraphExport>(&model, *callee.body, callee.name));
    PF_RETURN_IF_ERROR(Annotate(subgraphs.back()->RunBody(callee.args), absl::StrCat("function '", callee.name, "'")));
  }
  if (const std::vector<Node*> initializers = model.Initializers(); !initializers.empty()) {
    ExportedOperator call;
    call.op = tflite::BuiltinOperator::CALL_ONCE;
    call.options_type = tflite::BuiltinOptions::CallOnceOptions;
    const size_t index = (keeps_subgraphs ? static_cast<size_t>(num_kept) - 1 : 0) + subgraphs.size();
    call.options = tflite::CreateCallOnceOptions(model.builder(), static_cast<int32_t>(index)).Union();
    model.RequireRuntime("2.5");  // That of CALL_ONCE.
    subgraphs[0]->Prepend(std::move(call));
    subgraphs.push_back(std::make_unique<SubgraphExport>(&model, graph, "initializers"));
    PF_RETURN_IF_ERROR(subgraphs.back()->RunInitializers(initializers));
  }
  PF_RETURN_IF_ERROR(model.Problems());
  if (container.has_value()) PF_RETURN_IF_ERROR(model.KeepSurroundings(*container));
  std::vector<flatbuffers::Offset<tflite::SubGraph>> encoded;
  for (const std::unique_ptr<SubgraphExport>& subgraph : subgraphs) {
    PF_RETURN_IF_ERROR(subgraph->CheckTensors());
    encoded.push_back(subgraph->Encode());
  }
  if (!container.has_value()) {
    const auto signature = subgraphs[0]->EncodeSignature("serving_default", 0);
    subgraphs.clear();  // Frees their views of constants.
    return model.Write(std::move(encoded), {signature}, limits, sink);
  }
  if (keeps_subgraphs) {
    std::vector<flatbuffers::Offset<tflite::SubGraph>> all;
    for (int i = 0; i < num_kept; ++i) {
      if (i == entry) {
        all.push_back(encoded[0]);
      } else {
        PF_ASSIGN_OR_RETURN(all.emplace_back(), model.CopySubgraph(*container, i));
      }
    }
    all.insert(all.end(), encoded.begin() + 1, encoded.end());
    encoded = std::move(all);
  }
  PF_ASSIGN_OR_RETURN(auto signatures, subgraphs[0]->KeepSignatures(*container, entry, keeps_subgraphs));
  subgraphs.clear();
  return model.Write(std::move(encoded), std::move(signatures), limits, sink);
}

}  // namespace permafrost
