// Exports nodes that carry operators, and the parts of a source model that surround its operators.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/archive.h"
#include "io/formats/tflite/carried_operator.h"
#include "io/formats/tflite/provenance.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

constexpr absl::string_view kRuntimeKey = "min_runtime_version";

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
}

// True if both describe the same numbers behind codes.
bool SameScales(const tflite::TensorT& a, const tflite::TensorT& b) {
  static const tflite::QuantizationParametersT* const kNone = new tflite::QuantizationParametersT;
  const tflite::QuantizationParametersT& x = a.quantization == nullptr ? *kNone : *a.quantization;
  const tflite::QuantizationParametersT& y = b.quantization == nullptr ? *kNone : *b.quantization;
  return x.scale == y.scale && x.zero_point == y.zero_point &&
         (x.scale.size() < 2 || x.quantized_dimension == y.quantized_dimension);
}

std::string Described(const tflite::TensorT& tensor) {
  std::string text = tflite::EnumNameTensorType(tensor.type);
  if (tensor.quantization != nullptr && !tensor.quantization->scale.empty()) {
    const auto& points = tensor.quantization->zero_point;
    absl::StrAppend(&text, " with the scale ", tensor.quantization->scale[0], " and the zero point ",
                    points.empty() ? 0 : points[0]);
  }
  return text;
}

// Replaces the shape of a tensor if `shape` has a rank and is another one.
void TakeShape(const Shape& shape, tflite::TensorT* tensor) {
  if (!shape.has_rank()) return;
  std::vector<int32_t> dims, open;
  for (int d = 0; d < shape.rank(); ++d) {
    const auto dim = static_cast<int32_t>(shape.dim(d));
    dims.push_back(dim < 0 ? 1 : dim);
    open.push_back(dim);
  }
  if ((tensor->shape_signature.empty() ? tensor->shape : tensor->shape_signature) == open) return;
  tensor->shape = std::move(dims);
  tensor->shape_signature = shape.IsFullyKnown() ? std::vector<int32_t>() : std::move(open);
}

}  // namespace

void SubgraphExport::Describe(int32_t index, const tflite::TensorT& tensor, bool is_result, const Node& node) {
  TensorRecord& record = tensors_[static_cast<size_t>(index)];
  if (record.kept != nullptr && (record.kept->type != tensor.type || !SameScales(*record.kept, tensor))) {
    model_->AddProblem(absl::StrCat(node.Describe(), is_result ? " computes" : " reads", " '", record.name, "' as ",
                                    Described(tensor), ", expected ", Described(*record.kept)));
    return;
  }
  if (record.kept != nullptr && !is_result) return;
  auto kept = std::make_shared<tflite::TensorT>(tensor);
  // The reader describes the tensor as it was in the file; its shape may have been changed.
  const bool is_input = std::find(inputs_.begin(), inputs_.end(), index) != inputs_.end();
  if (!is_result && (is_input || record.shape.IsFullyKnown())) TakeShape(record.shape, kept.get());
  record.kept = std::move(kept);
}

absl::StatusOr<int32_t> SubgraphExport::KeptConstant(const Node& constant, const tflite::TensorT& tensor) {
  PF_ASSIGN_OR_RETURN(Tensor value, ConstValue(constant));
  // A constant that several operators read is one tensor, if they describe it in the same way.
  flatbuffers::FlatBufferBuilder description;
  description.Finish(tflite::CreateTensor(description, &tensor));
  const auto [known, is_new] = kept_constants_.try_emplace(
      {&constant, std::string(reinterpret_cast<const char*>(description.GetBufferPointer()), description.GetSize())},
      -1);
  if (!is_new && known->second >= 0) return known->second;
  auto kept = std::make_shared<tflite::TensorT>(tensor);
  const DType dtype = DTypeOfTflite(tensor.type);
  if (HasOwnLayout(tensor.type, tensor.sparsity != nullptr)) {
    if (value.dtype() != DType::kUint8 || value.shape().rank() != 1) {
      return absl::UnimplementedError(absl::StrCat("reads ", constant.Describe(), ", whose encoded value was changed"));
    }
  } else {
    if (value.dtype() != dtype) {
      return absl::UnimplementedError(absl::StrCat("reads ", constant.Describe(), " of ", DTypeName(value.dtype()),
                                                   ", expected ", DTypeName(dtype)));
    }
    kept->shape.clear();
    for (int i = 0; i < value.shape().rank(); ++i) kept->shape.push_back(static_cast<int32_t>(value.shape().dim(i)));
  }
  const int32_t index = AddConstant(std::move(value), tensor.name.empty() ? constant.name() : tensor.name);
  tensors_[static_cast<size_t>(index)].kept = std::move(kept);
  known->second = index;
  return index;
}

absl::Status SubgraphExport::SelectCarried(Node* node) {
  absl::StatusOr<CarriedOperator> read = ReadCarried(*node);
  PF_RETURN_IF_ERROR(read.status());
  auto carried = std::make_shared<CarriedOperator>(*std::move(read));
  if (!CalledSubgraphs(carried->op).empty() && !model_->keeps_subgraphs()) {
    model_->AddProblem(absl::StrCat(node->Describe(), " calls subgraphs from the body of a function"));
  }
  std::vector<int32_t> index_of(carried->tensors.size(), -1);
  for (int k = 0; k < carried->num_outputs; ++k) {
    const size_t at = static_cast<size_t>(carried->num_inputs + k);
    const tflite::TensorT& tensor = *carried->tensors[at];
    const TensorRef ref{node, k};
    const bool is_new = !tensor_of_.contains(ref);
    index_of[at] = TensorOf(ref);
    Describe(index_of[at], tensor, true, *node);
    // The name of a result is that of the file, if the node has it still, unless it was declared under another name.
    TensorRecord& record = tensors_[static_cast<size_t>(index_of[at])];
    const bool is_declared = output_name_.contains(ref);
    if (!tensor.name.empty() && (k > 0 ? !is_declared : is_new || !is_declared)) record.name = tensor.name;
  }
  for (int k = 0; k < carried->num_inputs; ++k) {
    const tflite::TensorT& tensor = *carried->tensors[static_cast<size_t>(k)];
    const TensorRef ref = Resolve(node->input(k));
    int32_t& index = index_of[static_cast<size_t>(k)];
    if (ref.node->op() == ops::kConst && !IsFed(ref)) {
      const absl::StatusOr<int32_t> constant = KeptConstant(*ref.node, tensor);
      if (!constant.ok()) {
        model_->AddProblem(absl::StrCat(node->Describe(), " ", constant.status().message()));
        continue;
      }
      index = *constant;
    } else {
      index = TensorOf(ref);
      Describe(index, tensor, false, *node);
    }
  }
  for (size_t i = static_cast<size_t>(carried->num_inputs + carried->num_outputs); i < carried->tensors.size(); ++i) {
    const tflite::TensorT& tensor = *carried->tensors[i];
    index_of[i] = AddTensor(tensor.name, DTypeOfTflite(tensor.type), Shape());
    tensors_.back().kept = std::make_shared<tflite::TensorT>(tensor);
  }
  const auto renumber = [&index_of](std::vector<int32_t>* tensors) {
    for (int32_t& tensor : *tensors) {
      if (tensor >= 0) tensor = index_of[static_cast<size_t>(tensor)];
    }
  };
  renumber(&carried->op.inputs);
  renumber(&carried->op.outputs);
  renumber(&carried->op.intermediates);
  // Scales of blocks are tensors as well.
  for (const int32_t index : index_of) {
    if (index < 0) continue;
    TensorRecord& record = tensors_[static_cast<size_t>(index)];
    if (record.kept == nullptr || record.kept->quantization == nullptr) continue;
    if (record.kept->quantization->details.AsBlockwiseQuantization() == nullptr) continue;
    auto kept = std::make_shared<tflite::TensorT>(*record.kept);
    tflite::BlockwiseQuantizationT& blocks = *kept->quantization->details.AsBlockwiseQuantization();
    const auto described = std::find_if(index_of.begin(), index_of.end(), [index](int32_t i) { return i == index; });
    const auto* original = carried->tensors[static_cast<size_t>(described - index_of.begin())]
                               ->quantization->details.AsBlockwiseQuantization();
    if (original == nullptr) continue;
    if (original->scales >= 0) blocks.scales = index_of[static_cast<size_t>(original->scales)];
    if (original->zero_points > 0) blocks.zero_points = index_of[static_cast<size_t>(original->zero_points)];
    record.kept = std::move(kept);
  }
  ExportedOperator exported;
  exported.carried = std::move(carried);
  operators_.push_back(std::move(exported));
  return absl::OkStatus();
}

void SubgraphExport::DescribeInterface(const TfliteContainer& source, int entry) {
  const tflite::SubGraph& subgraph = source.subgraph(entry);
  absl::flat_hash_map<std::string, const tflite::Tensor*> tensor_of_name;
  for (const tflite::Tensor* tensor : *subgraph.tensors()) {
    tensor_of_name.emplace(NodeNameOfTensor(TextOf(tensor->name())), tensor);
  }
  // A fed tensor that has the type of the file keeps its scales.
  const auto keep = [](const tflite::Tensor& tensor, TensorRecord* record) {
    if (record->kept != nullptr || record->dtype != DTypeOfTflite(tensor.type())) return;
    auto kept = std::make_shared<tflite::TensorT>();
    tensor.UnPackTo(kept.get());
    kept->buffer = 0;
    kept->is_variable = false;
    TakeShape(record->shape, kept.get());
    record->kept = std::move(kept);
  };
  const auto describe = [&](const flatbuffers::Vector<int32_t>* theirs, const std::vector<Endpoint>& ours,
                            const std::vector<int32_t>& indices, bool is_input) {
    // By name, or by position if none was added or removed.
    const uint32_t count = theirs == nullptr ? 0 : theirs->size();
    for (size_t i = 0; i < ours.size(); ++i) {
      TensorRecord& record = tensors_[static_cast<size_t>(indices[i])];
      const auto named = tensor_of_name.find(record.name);
      // An inner tensor of the file that became an input.
      const tflite::Tensor* inner = named == tensor_of_name.end() ? nullptr : named->second;
      for (uint32_t k = 0; k < count; ++k) {
        const tflite::Tensor& tensor = *subgraph.tensors()->Get(static_cast<uint32_t>(theirs->Get(k)));
        const bool has_name = NodeNameOfTensor(TextOf(tensor.name())) == record.name;
        if (has_name) inner = nullptr;
        if (!has_name && (inner != nullptr || ours.size() != count || i != k)) continue;
        if (has_name) record.name = std::string(TextOf(tensor.name()));
        if (is_input) keep(tensor, &record);
        break;
      }
      if (is_input && inner != nullptr) keep(*inner, &record);
    }
  };
  describe(subgraph.inputs(), graph_.inputs(), inputs_, true);
  describe(subgraph.outputs(), graph_.outputs(), outputs_, false);
}

absl::StatusOr<std::vector<flatbuffers::Offset<tflite::SignatureDef>>> SubgraphExport::KeepSignatures(
    const TfliteContainer& source, int entry, bool has_others) {
  flatbuffers::FlatBufferBuilder& builder = model_->builder();
  std::vector<flatbuffers::Offset<tflite::SignatureDef>> signatures;
  const tflite::SubGraph& subgraph = source.subgraph(entry);
  // Returns the arguments for the tensors of the interface; a tensor without one gets its own name.
  const auto arguments = [&](const flatbuffers::Vector<flatbuffers::Offset<tflite::TensorMap>>* theirs,
                             const flatbuffers::Vector<int32_t>* interface, const std::vector<Endpoint>& endpoints,
                             const std::vector<int32_t>& indices) {
    std::vector<flatbuffers::Offset<tflite::TensorMap>> maps;
    std::vector<std::string> names(indices.size());
    for (const auto* map : *theirs) {
      const uint32_t count = interface == nullptr ? 0 : interface->size();
      for (uint32_t k = 0; k < count; ++k) {
        if (static_cast<uint32_t>(interface->Get(k)) != map->tensor_index()) continue;
        const std::string name(TextOf(subgraph.tensors()->Get(map->tensor_index())->name()));
        for (size_t i = 0; i < indices.size(); ++i) {
          const bool is_same =
              tensors_[static_cast<size_t>(indices[i])].name == name || (indices.size() == count && i == k);
          if (is_same && names[i].empty()) {
            names[i] = std::string(TextOf(map->name()));
            break;
          }
        }
      }
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      const std::string& name = names[i].empty() ? endpoints[i].text : names[i];
      maps.push_back(tflite::CreateTensorMap(builder, builder.CreateString(name), static_cast<uint32_t>(indices[i])));
    }
    return builder.CreateVector(maps);
  };
  const auto* theirs = source.model().signature_defs();
  if (theirs == nullptr) return signatures;
  for (const auto* signature : *theirs) {
    const bool is_own = static_cast<int64_t>(signature->subgraph_index()) == entry;
    if (!is_own && !has_others) continue;
    if (!is_own || signature->inputs() == nullptr || signature->outputs() == nullptr) {
      tflite::SignatureDefT copy;
      signature->UnPackTo(&copy);
      signatures.push_back(tflite::CreateSignatureDef(builder, &copy));
      continue;
    }
    const auto inputs = arguments(signature->inputs(), subgraph.inputs(), graph_.inputs(), inputs_);
    const auto outputs = arguments(signature->outputs(), subgraph.outputs(), graph_.outputs(), outputs_);
    const auto key = builder.CreateString(std::string(TextOf(signature->signature_key())));
    signatures.push_back(
        tflite::CreateSignatureDef(builder, inputs, outputs, key, has_others ? static_cast<uint32_t>(entry) : 0));
  }
  return signatures;
}

absl::Status ModelExport::KeepSurroundings(const TfliteContainer& source) {
  const tflite::Model& model = source.model();
  if (model.description() != nullptr) description_ = std::string(TextOf(model.description()));
  if (model.metadata() != nullptr) {
    for (const auto* metadata : *model.metadata()) {
      if (metadata == nullptr || model.buffers() == nullptr || metadata->buffer() >= model.buffers()->size()) continue;
      absl::StatusOr<absl::string_view> bytes = source.BufferBytes(metadata->buffer());
      PF_RETURN_IF_ERROR(bytes.status());
      if (TextOf(metadata->name()) == kRuntimeKey) {
        RequireRuntime(std::string(bytes->substr(0, bytes->find('\0'))));
        continue;
      }
      metadata_.emplace_back(TextOf(metadata->name()), BufferOf(*bytes, source.file().owner));
    }
  }
  // Bytes behind the model that are no archive are not copied: nothing says what they refer to.
  const absl::StatusOr<Archive> archive = FindArchive(source.file().bytes);
  if (archive.ok() && archive->start < source.file().bytes.size()) {
    archive_ = std::string(source.file().bytes.substr(archive->start));
    archive_origin_ = archive->start;
  }
  return absl::OkStatus();
}

void ModelExport::SetMetadata(absl::string_view key, const std::string& content, const std::string& archive) {
  auto owned = std::make_shared<std::string>(content);
  const uint32_t buffer = BufferOf(*owned, owned);
  metadata_.erase(std::remove_if(metadata_.begin(), metadata_.end(),
                                 [key](const std::pair<std::string, uint32_t>& entry) { return entry.first == key; }),
                  metadata_.end());
  metadata_.emplace_back(key, buffer);
  archive_ = archive;
  archive_origin_ = 0;
}

absl::Status CopyTflite(const TfliteContainer& source, absl::string_view key, const std::string& content,
                        const std::string& archive, ByteSink* sink) {
  const Graph none;
  ModelExport model(none, FunctionLibrary(), false);
  PF_RETURN_IF_ERROR(model.KeepSurroundings(source));
  model.SetMetadata(key, content, archive);
  std::vector<flatbuffers::Offset<tflite::SubGraph>> subgraphs;
  for (uint32_t i = 0; i < source.model().subgraphs()->size(); ++i) {
    PF_ASSIGN_OR_RETURN(subgraphs.emplace_back(), model.CopySubgraph(source, static_cast<int>(i)));
  }
  std::vector<flatbuffers::Offset<tflite::SignatureDef>> signatures;
  if (source.model().signature_defs() != nullptr) {
    for (const auto* signature : *source.model().signature_defs()) {
      tflite::SignatureDefT copy;
      signature->UnPackTo(&copy);
      signatures.push_back(tflite::CreateSignatureDef(model.builder(), &copy));
    }
  }
  return model.Write(std::move(subgraphs), std::move(signatures), TfliteLimits(), sink);
}

absl::StatusOr<flatbuffers::Offset<tflite::SubGraph>> ModelExport::CopySubgraph(const TfliteContainer& source,
                                                                                int index) {
  const tflite::SubGraph& subgraph = source.subgraph(index);
  std::vector<flatbuffers::Offset<tflite::Tensor>> tensors;
  std::vector<flatbuffers::Offset<tflite::Operator>> operators;
  if (subgraph.tensors() != nullptr) {
    for (const auto* tensor : *subgraph.tensors()) {
      PF_RETURN_IF_ERROR(TakeCopied(DescriptionBytes(*tensor), source.file().bytes.size()));
      tflite::TensorT copy;
      tensor->UnPackTo(&copy);
      // A computed tensor may have an empty buffer of its own. Runtimes would take its copy for a constant of 0 bytes.
      if (source.IsConstant(*tensor)) {
        PF_ASSIGN_OR_RETURN(const absl::string_view bytes, source.BufferBytes(copy.buffer));
        copy.buffer = BufferOf(bytes, source.file().owner);
      } else {
        copy.buffer = 0;
      }
      tensors.push_back(tflite::CreateTensor(builder_, &copy));
    }
  }
  if (subgraph.operators() != nullptr) {
    for (const auto* op : *subgraph.operators()) {
      tflite::OperatorT copy;
      op->UnPackTo(&copy);
      const auto* code = source.model().operator_codes()->Get(copy.opcode_index);
      copy.opcode_index = OperatorCode(source.OperatorOf(*op), code->version(), source.CustomName(*op));
      if (copy.large_custom_options_offset > 1) {
        PF_ASSIGN_OR_RETURN(const absl::string_view bytes,
                            source.BytesAt(copy.large_custom_options_offset, copy.large_custom_options_size));
        copy.custom_options.assign(bytes.begin(), bytes.end());
        copy.large_custom_options_offset = copy.large_custom_options_size = 0;
      }
      const uint64_t before = builder_.GetSize();
      operators.push_back(tflite::CreateOperator(builder_, &copy));
      PF_RETURN_IF_ERROR(TakeCopied(builder_.GetSize() - before, source.file().bytes.size()));
    }
  }
  const auto list = [this](const flatbuffers::Vector<int32_t>* values) {
    return values == nullptr ? builder_.CreateVector(std::vector<int32_t>())
                             : builder_.CreateVector(values->data(), values->size());
  };
  const auto tensors_offset = builder_.CreateVector(tensors);
  const auto inputs = list(subgraph.inputs());
  const auto outputs = list(subgraph.outputs());
  const auto operators_offset = builder_.CreateVector(operators);
  flatbuffers::Offset<flatbuffers::String> name;
  if (subgraph.name() != nullptr) name = builder_.CreateString(std::string(TextOf(subgraph.name())));
  return tflite::CreateSubGraph(builder_, tensors_offset, inputs, outputs, operators_offset, name);
}

absl::Status ModelExport::TakeCopied(uint64_t bytes, uint64_t file_bytes) {
  // Tables of a file may share their parts, which a copy does not.
  constexpr uint64_t kFileFactor = 4, kLeast = 1 << 20;
  copied_bytes_ += bytes;
  if (copied_bytes_ <= kFileFactor * file_bytes + kLeast) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the descriptions in other subgraphs exceed ", kFileFactor * file_bytes + kLeast, " bytes"));
}

}  // namespace permafrost
