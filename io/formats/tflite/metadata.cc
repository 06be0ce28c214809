// Implements the reading and writing of TFLITE_METADATA, and the access to signatures.
#include "io/formats/tflite/metadata.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/formats/tflite/archive.h"
#include "io/formats/tflite/metadata_generated.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

namespace facts = tflite_metadata;

constexpr absl::string_view kMetadataKey = "TFLITE_METADATA", kRuntimeKey = "min_runtime_version";
constexpr uint32_t kMostDepth = 32;  // Nesting of tables; the format needs 7.
// Lists and texts are cut to these lengths, which no real model reaches: tables may share parts without bound.
constexpr uint32_t kMostItems = 1000;
constexpr size_t kLongestText = 10000;

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : std::string(text->c_str(), std::min<size_t>(text->size(), kLongestText));
}

std::vector<float> FloatsOf(const flatbuffers::Vector<float>* values) {
  std::vector<float> floats;
  for (uint32_t i = 0; values != nullptr && i < std::min(values->size(), kMostItems); ++i) {
    floats.push_back(values->Get(i));
  }
  return floats;
}

template <typename Vector, typename Visit>
void ForEach(const Vector* items, const Visit& visit) {
  for (uint32_t i = 0; items != nullptr && i < std::min(items->size(), kMostItems); ++i) visit(*items->Get(i));
}

std::vector<TfliteFile> FilesOf(const flatbuffers::Vector<flatbuffers::Offset<facts::AssociatedFile>>* files) {
  std::vector<TfliteFile> result;
  ForEach(files, [&result](const facts::AssociatedFile& file) {
    const char* type = facts::EnumNameAssociatedFileType(file.type());
    result.push_back({TextOf(file.name()), TextOf(file.description()), type});
  });
  return result;
}

std::vector<TfliteTensorFacts> TensorsOf(
    const flatbuffers::Vector<flatbuffers::Offset<facts::TensorMetadata>>* tensors) {
  std::vector<TfliteTensorFacts> result;
  ForEach(tensors, [&result](const facts::TensorMetadata& tensor) {
    TfliteTensorFacts described;
    described.name = TextOf(tensor.name());
    described.description = TextOf(tensor.description());
    ForEach(tensor.process_units(), [&described](const facts::ProcessUnit& unit) {
      const auto* normalization = unit.options_as_NormalizationOptions();
      if (normalization == nullptr) return;
      described.mean = FloatsOf(normalization->mean());
      described.std = FloatsOf(normalization->std());
    });
    if (tensor.stats() != nullptr) {
      described.min = FloatsOf(tensor.stats()->min());
      described.max = FloatsOf(tensor.stats()->max());
    }
    described.files = FilesOf(tensor.associated_files());
    result.push_back(std::move(described));
  });
  return result;
}

// Returns the content of a metadata entry, or an empty view.
absl::string_view MetadataBytes(const TfliteContainer& container, absl::string_view key) {
  const tflite::Model& model = container.model();
  if (model.metadata() == nullptr || model.buffers() == nullptr) return {};
  for (const auto* metadata : *model.metadata()) {
    if (metadata->name() == nullptr || metadata->buffer() >= model.buffers()->size()) continue;
    if (absl::string_view(metadata->name()->c_str(), metadata->name()->size()) != key) continue;
    return container.BufferBytes(metadata->buffer()).value_or(absl::string_view());
  }
  return {};
}

// Fills in what the metadata say.
absl::Status ReadMetadata(absl::string_view bytes, int subgraph, TfliteFacts* result) {
  // A FlatBuffer is read in place, so it must be aligned.
  const std::string aligned(bytes);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(aligned.data()), aligned.size(), kMostDepth,
                                 static_cast<uint32_t>(std::min<size_t>(aligned.size() / 4 + 1, UINT32_MAX)));
  if (!facts::VerifyModelMetadataBuffer(verifier)) {
    return absl::DataLossError(absl::StrCat(kMetadataKey, " is damaged, or no FlatBuffer with the identifier 'M001'"));
  }
  const facts::ModelMetadata& metadata = *facts::GetModelMetadata(aligned.data());
  result->name = TextOf(metadata.name());
  result->purpose = TextOf(metadata.description());
  result->version = TextOf(metadata.version());
  result->author = TextOf(metadata.author());
  result->license = TextOf(metadata.license());
  result->files = FilesOf(metadata.associated_files());
  const auto* subgraphs = metadata.subgraph_metadata();
  if (subgraphs == nullptr || static_cast<uint32_t>(subgraph) >= subgraphs->size()) return absl::OkStatus();
  const facts::SubGraphMetadata& described = *subgraphs->Get(static_cast<uint32_t>(subgraph));
  result->inputs = TensorsOf(described.input_tensor_metadata());
  result->outputs = TensorsOf(described.output_tensor_metadata());
  for (TfliteFile& file : FilesOf(described.associated_files())) result->files.push_back(std::move(file));
  return absl::OkStatus();
}

std::vector<TfliteSignature> SignaturesOf(const TfliteContainer& container) {
  std::vector<TfliteSignature> signatures;
  const auto count = static_cast<uint32_t>(container.model().subgraphs()->size());
  ForEach(container.model().signature_defs(), [&](const tflite::SignatureDef& signature) {
    if (signature.subgraph_index() >= count) return;
    TfliteSignature described;
    described.key = TextOf(signature.signature_key());
    described.subgraph = static_cast<int>(signature.subgraph_index());
    const auto* tensors = container.subgraph(described.subgraph).tensors();
    const auto read = [&](const auto* maps, auto* pairs) {
      ForEach(maps, [&](const tflite::TensorMap& map) {
        const bool is_tensor = tensors != nullptr && map.tensor_index() < tensors->size();
        if (!is_tensor) return;
        pairs->emplace_back(TextOf(map.name()), NodeNameOfTensor(TextOf(tensors->Get(map.tensor_index())->name())));
      });
    };
    read(signature.inputs(), &described.inputs);
    read(signature.outputs(), &described.outputs);
    signatures.push_back(std::move(described));
  });
  return signatures;
}

bool HoldsLabels(const TfliteFile& file) {
  return file.type == facts::EnumNameAssociatedFileType(facts::AssociatedFileType::TENSOR_AXIS_LABELS) ||
         file.type == facts::EnumNameAssociatedFileType(facts::AssociatedFileType::TENSOR_VALUE_LABELS);
}

}  // namespace

absl::StatusOr<TfliteFacts> ReadTfliteFacts(const TfliteSource& source) {
  PF_ASSIGN_OR_RETURN(const TfliteContainer container, source.Open());
  TfliteFacts result;
  result.description = TextOf(container.model().description());
  const absl::string_view runtime = MetadataBytes(container, kRuntimeKey);
  result.min_runtime_version = std::string(runtime.substr(0, std::min(runtime.find('\0'), kLongestText)));
  if (const absl::string_view bytes = MetadataBytes(container, kMetadataKey); !bytes.empty()) {
    if (const absl::Status status = ReadMetadata(bytes, source.entry(), &result); !status.ok()) {
      result.problems.emplace_back(status.message());
    }
  }
  const absl::StatusOr<Archive> archive = FindArchive(source.file().bytes);
  if (archive.ok()) {
    for (const ArchiveEntry& entry : archive->entries) result.archive.emplace_back(entry.name, entry.bytes);
  } else {
    result.problems.emplace_back(archive.status().message());
  }
  result.signatures = SignaturesOf(container);
  return result;
}

absl::StatusOr<std::string> ReadLabels(const TfliteSource& source, uint64_t max_bytes) {
  PF_ASSIGN_OR_RETURN(const TfliteFacts known, ReadTfliteFacts(source));
  PF_ASSIGN_OR_RETURN(const Archive archive, FindArchive(source.file().bytes));
  std::vector<std::string> names;
  const auto add = [&names](const std::vector<TfliteFile>& files) {
    for (const TfliteFile& file : files) {
      if (HoldsLabels(file) && std::find(names.begin(), names.end(), file.name) == names.end()) {
        names.push_back(file.name);
      }
    }
  };
  for (const TfliteTensorFacts& output : known.outputs) add(output.files);
  add(known.files);
  if (names.empty() && archive.entries.size() == 1) names.push_back(archive.entries[0].name);
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat("the model has no labels: its metadata name no such file, and ",
                                            archive.entries.size(), " files follow it"));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has several files with labels: ", absl::CEscape(absl::StrJoin(names, ", "))));
  }
  for (const ArchiveEntry& entry : archive.entries) {
    if (entry.name == names[0]) return ReadEntry(source.file().bytes, entry, max_bytes);
  }
  return absl::DataLossError(
      absl::StrCat("the metadata name the labels '", absl::CEscape(names[0]), "', which do not follow the model"));
}

absl::StatusOr<std::unique_ptr<Graph>> OpenSignature(const TfliteSource& source, absl::string_view key) {
  PF_ASSIGN_OR_RETURN(TfliteContainer container, source.Open());
  std::vector<std::string> keys;
  for (const TfliteSignature& signature : SignaturesOf(container)) {
    if (signature.key != key) {
      keys.push_back(absl::StrCat("'", absl::CEscape(signature.key), "'"));
      continue;
    }
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ImportTflite(std::move(container), signature.subgraph));
    AttachSource(graph.get(), source.WithEntry(signature.subgraph));
    return graph;
  }
  return absl::InvalidArgumentError(absl::StrCat("the model has no signature '", absl::CEscape(key), "', expected ",
                                                 keys.empty() ? "none, for it has none" : absl::StrJoin(keys, ", ")));
}

std::vector<std::pair<std::string, std::string>> SignatureNames(const Graph& graph) {
  std::vector<std::pair<std::string, std::string>> names;
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(graph);
  if (source == nullptr) return names;
  const absl::StatusOr<TfliteContainer> container = source->Open();
  if (!container.ok()) return names;
  for (const TfliteSignature& signature : SignaturesOf(*container)) {
    if (signature.subgraph != source->entry()) continue;
    names.insert(names.end(), signature.inputs.begin(), signature.inputs.end());
    names.insert(names.end(), signature.outputs.begin(), signature.outputs.end());
  }
  return names;
}

absl::StatusOr<std::string> WithMetadata(absl::string_view model, const NewTfliteMetadata& metadata) {
  PF_ASSIGN_OR_RETURN(const TfliteContainer container, TfliteContainer::Open(FileView{model, nullptr}, 0));
  flatbuffers::FlatBufferBuilder builder;
  const tflite::SubGraph& subgraph = container.subgraph(0);
  const auto describe = [&](const flatbuffers::Vector<int32_t>* indices, bool is_input) {
    std::vector<flatbuffers::Offset<facts::TensorMetadata>> tensors;
    for (uint32_t i = 0; indices != nullptr && i < indices->size(); ++i) {
      const tflite::Tensor& tensor = container.tensor(0, indices->Get(i));
      const auto name = builder.CreateString(TextOf(tensor.name()));
      flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<facts::ProcessUnit>>> units;
      flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<facts::AssociatedFile>>> files;
      if (is_input && i == 0 && !metadata.mean.empty()) {
        const auto options = facts::CreateNormalizationOptions(builder, builder.CreateVector(metadata.mean),
                                                               builder.CreateVector(metadata.std));
        const auto unit =
            facts::CreateProcessUnit(builder, facts::ProcessUnitOptions::NormalizationOptions, options.Union());
        units = builder.CreateVector(&unit, 1);
      }
      if (!is_input && i == 0 && !metadata.labels_name.empty()) {
        const auto file_name = builder.CreateString(metadata.labels_name);
        const auto description = builder.CreateString("Labels of the classes.");
        const auto file =
            facts::CreateAssociatedFile(builder, file_name, description, facts::AssociatedFileType::TENSOR_AXIS_LABELS);
        files = builder.CreateVector(&file, 1);
      }
      tensors.push_back(facts::CreateTensorMetadata(builder, name, 0, 0, 0, units, 0, files));
    }
    return builder.CreateVector(tensors);
  };
  const auto inputs = describe(subgraph.inputs(), true);
  const auto outputs = describe(subgraph.outputs(), false);
  const auto described = facts::CreateSubGraphMetadata(builder, 0, 0, inputs, outputs);
  const auto subgraphs = builder.CreateVector(&described, 1);
  // The version of the format that has associated files and normalisation.
  const auto parser = builder.CreateString("1.0.0");
  facts::FinishModelMetadataBuffer(builder, facts::CreateModelMetadata(builder, 0, 0, 0, subgraphs, 0, 0, 0, parser));
  const std::string encoded(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  std::string archive;
  if (!metadata.labels_name.empty()) {
    PF_ASSIGN_OR_RETURN(archive, MakeArchive({{metadata.labels_name, metadata.labels}}));
  }
  StringSink sink;
  PF_RETURN_IF_ERROR(CopyTflite(container, kMetadataKey, encoded, archive, &sink));
  return std::string(sink.text());
}

}  // namespace permafrost
