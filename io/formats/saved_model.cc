// Implements reading of SavedModel and MetaGraphDef messages field by field, without copying the graph inside.
#include "io/formats/saved_model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/attr.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/checked_files.h"
#include "io/formats/graphdef.h"
#include "io/formats/message_rules.h"
#include "io/formats/proto/saved_model.pb.h"
#include "io/formats/text_message.h"
#include "io/model_format.h"

namespace permafrost {
namespace {

// Field numbers: see proto/saved_model.proto.
enum SavedModelField : uint32_t { kSchemaVersion = 1, kMetaGraphs = 2 };
enum MetaGraphField : uint32_t { kMetaInfo = 1, kGraphDef = 2, kSaver = 3, kSignature = 5, kAsset = 6 };
enum MetaInfoField : uint32_t { kTags = 4, kTensorflowVersion = 5 };
enum SaverField : uint32_t { kRestoreOp = 3 };
enum SignatureField : uint32_t { kInputs = 1, kOutputs = 2, kMethod = 3 };
enum TensorInfoField : uint32_t { kName = 1, kDtype = 2, kShape = 3, kCooSparse = 4, kComposite = 5 };
enum AssetField : uint32_t { kAssetTensor = 1, kFilename = 2 };
enum MapEntry : uint32_t { kKey = 1, kValue = 2 };

constexpr uint64_t kKnownSchemaVersion = 1;
// The signature that initialises tables, which cannot be called as a model.
constexpr absl::string_view kInitSignature = "__saved_model_init_op";
constexpr absl::string_view kDefaultSignature = "serving_default";

absl::StatusOr<std::string> Text(const WireField& field, absl::string_view what) {
  if (IsUtf8(field.bytes)) return std::string(field.bytes);
  return absl::DataLossError(absl::StrCat(what, " is not UTF-8"));
}

absl::Status ReadTensorInfo(absl::string_view bytes, SignatureTensor* tensor) {
  return ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (field.number == kDtype && field.type == WireType::kVarint) {
      tensor->dtype = static_cast<DType>(static_cast<int32_t>(field.value));
    } else if (IsMessage(field, kName)) {
      PF_ASSIGN_OR_RETURN(tensor->name, Text(field, "the name of a tensor"));
      tensor->encoding = SignatureTensor::Encoding::kDense;
    } else if (IsMessage(field, kCooSparse) || IsMessage(field, kComposite)) {
      tensor->encoding =
          field.number == kCooSparse ? SignatureTensor::Encoding::kSparse : SignatureTensor::Encoding::kComposite;
      tensor->name.clear();
    } else if (IsMessage(field, kShape)) {
      PF_RETURN_IF_ERROR(CheckMessage(MessageType::kTensorShape, field.bytes));
      std::string attr;
      AppendBytesField(static_cast<uint32_t>(AttrValue::Kind::kShape), field.bytes, &attr);
      PF_ASSIGN_OR_RETURN(tensor->shape, AttrValue::FromWire(attr, nullptr).AsShape());
    }
    return absl::OkStatus();
  });
}

// Reads an entry of a map from strings to messages.
absl::Status ReadEntry(absl::string_view bytes, std::string* key, absl::string_view* value) {
  return ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (IsMessage(field, kKey)) {
      PF_ASSIGN_OR_RETURN(*key, Text(field, "a key"));
    }
    if (IsMessage(field, kValue)) *value = field.bytes;
    return absl::OkStatus();
  });
}

// Sorts the entries of a map. The last of several entries with the same key counts.
template <typename T, typename Key>
void SortEntries(std::vector<T>* entries, Key key) {
  std::reverse(entries->begin(), entries->end());
  std::stable_sort(entries->begin(), entries->end(), [&](const T& a, const T& b) { return a.*key < b.*key; });
  entries->erase(
      std::unique(entries->begin(), entries->end(), [&](const T& a, const T& b) { return a.*key == b.*key; }),
      entries->end());
}

absl::Status ReadSignature(absl::string_view bytes, Signature* signature) {
  const absl::Status status = ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (IsMessage(field, kMethod)) {
      PF_ASSIGN_OR_RETURN(signature->method, Text(field, "the method"));
    }
    if (!IsMessage(field, kInputs) && !IsMessage(field, kOutputs)) return absl::OkStatus();
    SignatureTensor tensor;
    absl::string_view value;
    PF_RETURN_IF_ERROR(ReadEntry(field.bytes, &tensor.key, &value));
    PF_RETURN_IF_ERROR(Annotate(ReadTensorInfo(value, &tensor), absl::StrCat("tensor '", tensor.key, "'")));
    (field.number == kInputs ? signature->inputs : signature->outputs).push_back(std::move(tensor));
    return absl::OkStatus();
  });
  PF_RETURN_IF_ERROR(Annotate(status, absl::StrCat("signature '", signature->name, "'")));
  SortEntries(&signature->inputs, &SignatureTensor::key);
  SortEntries(&signature->outputs, &SignatureTensor::key);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadTags(absl::string_view meta_graph) {
  std::vector<std::string> tags;
  PF_RETURN_IF_ERROR(ForEachField(meta_graph, [&](const WireField& field) {
    if (!IsMessage(field, kMetaInfo)) return absl::OkStatus();
    return ForEachField(field.bytes, [&](const WireField& info) -> absl::Status {
      if (!IsMessage(info, kTags)) return absl::OkStatus();
      PF_ASSIGN_OR_RETURN(tags.emplace_back(), Text(info, "a tag"));
      return absl::OkStatus();
    });
  }));
  std::sort(tags.begin(), tags.end());
  return tags;
}

absl::Status ReadSaver(absl::string_view bytes, std::string* restore_op) {
  return ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (!IsMessage(field, kRestoreOp)) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(*restore_op, Text(field, "the name of the restoring node"));
    return absl::OkStatus();
  });
}

absl::StatusOr<MetaGraph> ReadMeta(absl::string_view bytes, const Owner& owner) {
  MetaGraph meta;
  PF_ASSIGN_OR_RETURN(meta.tags, ReadTags(bytes));
  PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (field.type != WireType::kLengthDelimited) return absl::OkStatus();
    switch (field.number) {
      case kMetaInfo:
        return ForEachField(field.bytes, [&](const WireField& info) -> absl::Status {
          if (!IsMessage(info, kTensorflowVersion)) return absl::OkStatus();
          PF_ASSIGN_OR_RETURN(meta.tensorflow_version, Text(info, "the version of TensorFlow"));
          return absl::OkStatus();
        });
      case kGraphDef: {
        if (meta.graph != nullptr) return absl::DataLossError("the meta graph has two graphs, expected one");
        absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDef(field.bytes, owner, /*name_offsets=*/false);
        PF_RETURN_IF_ERROR(Annotate(graph.status(), "in the graph"));
        meta.graph = *std::move(graph);
        return absl::OkStatus();
      }
      case kSaver:
        return ReadSaver(field.bytes, &meta.restore_op);
      case kSignature: {
        Signature signature;
        absl::string_view value;
        PF_RETURN_IF_ERROR(ReadEntry(field.bytes, &signature.name, &value));
        PF_RETURN_IF_ERROR(ReadSignature(value, &signature));
        meta.signatures.push_back(std::move(signature));
        return absl::OkStatus();
      }
      case kAsset:
        meta.assets.emplace_back();
        return ForEachField(field.bytes, [&](const WireField& asset) -> absl::Status {
          if (IsMessage(asset, kFilename)) {
            PF_ASSIGN_OR_RETURN(meta.assets.back().file, Text(asset, "the name of an asset"));
          } else if (IsMessage(asset, kAssetTensor)) {
            SignatureTensor tensor;
            PF_RETURN_IF_ERROR(Annotate(ReadTensorInfo(asset.bytes, &tensor), "the tensor of an asset"));
            meta.assets.back().tensor = std::move(tensor.name);
          }
          return absl::OkStatus();
        });
      default:
        return absl::OkStatus();
    }
  }));
  if (meta.graph == nullptr) return absl::InvalidArgumentError("the meta graph has no graph");
  SortEntries(&meta.signatures, &Signature::name);
  for (const Signature& signature : meta.signatures) {
    if (signature.name != kInitSignature || signature.outputs.empty()) continue;
    meta.table_initializer = signature.outputs[0].name;
  }
  return meta;
}

std::string TagList(std::vector<std::string> tags) {
  if (tags.empty()) return "no tags";
  return absl::StrCat("'", absl::StrJoin(tags, ","), "'");
}

// Returns the binary form of a text file, or the file itself if it is binary.
absl::StatusOr<FileView> Binary(FileView file, bool is_text, google::protobuf::Message* message) {
  if (!is_text) return file;
  TextOptions options;
  options.skips_unknown_fields = true;
  PF_ASSIGN_OR_RETURN(std::string binary, TextToBinary(file.bytes, options, message));
  message->Clear();
  auto kept = std::make_shared<const std::string>(std::move(binary));
  return FileView{*kept, kept};
}

}  // namespace

bool IsSavedModel(FileSystem& files, const std::string& folder) {
  return files.Exists(absl::StrCat(folder, "/saved_model.pb")) ||
         files.Exists(absl::StrCat(folder, "/saved_model.pbtxt"));
}

std::string VariablesPrefix(const std::string& folder) { return absl::StrCat(folder, "/variables/variables"); }

absl::StatusOr<MetaGraph> ReadSavedModel(FileView file, bool is_text, absl::Span<const std::string> tags) {
  graphdef::SavedModel message;
  PF_ASSIGN_OR_RETURN(const FileView binary, Binary(std::move(file), is_text, &message));
  std::vector<std::string> wanted(tags.begin(), tags.end());
  std::sort(wanted.begin(), wanted.end());
  uint64_t version = 0;
  std::vector<std::string> found;
  std::vector<absl::string_view> matching;
  PF_RETURN_IF_ERROR(ForEachField(binary.bytes, [&](const WireField& field) -> absl::Status {
    if (field.number == kSchemaVersion && field.type == WireType::kVarint) version = field.value;
    if (!IsMessage(field, kMetaGraphs)) return absl::OkStatus();
    absl::StatusOr<std::vector<std::string>> its_tags = ReadTags(field.bytes);
    PF_RETURN_IF_ERROR(Annotate(its_tags.status(), absl::StrCat("meta graph ", found.size())));
    if (wanted.empty() || *its_tags == wanted) matching.push_back(field.bytes);
    found.push_back(TagList(*std::move(its_tags)));
    return absl::OkStatus();
  }));
  if (version != kKnownSchemaVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the SavedModel has schema version ", version, ", expected ", kKnownSchemaVersion));
  }
  if (found.empty()) return absl::InvalidArgumentError("the SavedModel has no meta graphs");
  if (matching.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(matching.empty() ? absl::StrCat("no meta graph has the tags ", TagList(wanted))
                     : wanted.empty() ? "the SavedModel has several meta graphs, expected tags that select one"
                                      : absl::StrCat(matching.size(), " meta graphs have the tags ", TagList(wanted)),
                     ", found ", absl::StrJoin(found, ", ")));
  }
  return ReadMeta(matching[0], binary.owner);
}

absl::StatusOr<MetaGraph> ReadMetaGraph(FileView file, bool is_text) {
  graphdef::MetaGraphDef message;
  PF_ASSIGN_OR_RETURN(const FileView binary, Binary(std::move(file), is_text, &message));
  return ReadMeta(binary.bytes, binary.owner);
}

absl::StatusOr<MetaGraph> OpenSavedModel(FileSystem& files, const std::string& folder,
                                         absl::Span<const std::string> tags) {
  PF_RETURN_IF_ERROR(files.Stat(folder).status());
  if (!IsSavedModel(files, folder)) {
    return absl::NotFoundError(absl::StrCat("'", folder,
                                            "' is not a SavedModel: it has neither a saved_model.pb nor a "
                                            "saved_model.pbtxt"));
  }
  std::string path = absl::StrCat(folder, "/saved_model.pb");
  const bool is_text = !files.Exists(path) && files.Exists(path + "txt");
  if (is_text) path += "txt";
  PF_ASSIGN_OR_RETURN(FileView file, MapFileIn(files, folder + "/", path.substr(folder.size() + 1)));
  absl::StatusOr<MetaGraph> meta = ReadSavedModel(std::move(file), is_text, tags);
  PF_RETURN_IF_ERROR(Annotate(meta.status(), absl::StrCat("'", path, "'")));
  return meta;
}

absl::StatusOr<MetaGraph> OpenMetaGraph(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
  const bool is_text = LooksLikeText(file.bytes);
  absl::StatusOr<MetaGraph> meta = ReadMetaGraph(std::move(file), is_text);
  PF_RETURN_IF_ERROR(Annotate(meta.status(), absl::StrCat("'", path, "'")));
  return meta;
}

absl::StatusOr<std::string> OpenSaver(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(FileView file, files.MapFile(path));
  const bool is_text = LooksLikeText(file.bytes);
  graphdef::SaverDef message;
  absl::StatusOr<FileView> binary = Binary(std::move(file), is_text, &message);
  PF_RETURN_IF_ERROR(Annotate(binary.status(), absl::StrCat("'", path, "'")));
  std::string restore_op;
  PF_RETURN_IF_ERROR(Annotate(ReadSaver(binary->bytes, &restore_op), absl::StrCat("'", path, "'")));
  return restore_op;
}

absl::StatusOr<const Signature*> FindSignature(const MetaGraph& meta_graph, absl::string_view name) {
  std::vector<absl::string_view> names;
  const Signature* only = nullptr;
  for (const Signature& signature : meta_graph.signatures) {
    if (signature.name == name || (name.empty() && signature.name == kDefaultSignature)) return &signature;
    if (signature.name == kInitSignature) continue;
    names.push_back(signature.name);
    only = &signature;
  }
  if (names.empty()) return absl::InvalidArgumentError("the SavedModel has no signatures; name its outputs instead");
  if (name.empty() && names.size() == 1) return only;
  return absl::InvalidArgumentError(
      absl::StrCat(name.empty() ? "no signature is specified" : absl::StrCat("there is no signature '", name, "'"),
                   ", found '", absl::StrJoin(names, "', '"), "'"));
}

}  // namespace permafrost
