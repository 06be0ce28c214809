// Implements reading of model.json: the topology with protobuf's JSON parser, the rest with json_value.h.
#include "io/formats/tfjs.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "graph/base/printable.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"
#include "graph/wire_format/tensor_proto.h"
#include "io/formats/graphdef.h"
#include "io/formats/json_value.h"
#include "io/formats/proto/graphdef.pb.h"
#include "io/formats/tfjs_ops.h"
#include "io/formats/tfjs_weights.h"

namespace permafrost {
namespace {

namespace pb = google::protobuf;
using Kind = JsonValue::Kind;

// A weight takes about ten values, everything else only a few.
constexpr uint64_t kMostValues = uint64_t{4} << 20;

bool MayBeTfjs(const ModelSource& source) { return LooksLikeJson(source.head.bytes); }

absl::StatusOr<JsonValue> Outermost(absl::string_view text) {
  return ParseJson(text, {/*built_depth=*/1, kMostValues});
}

// Parses the whole member, which Outermost has only checked.
absl::StatusOr<JsonValue> Built(const JsonValue& member) {
  return ParseJson(member.raw, {/*built_depth=*/64, kMostValues});
}

// Returns the topology, or the reason why there is none.
absl::StatusOr<absl::string_view> FindTopology(const JsonValue& root) {
  const JsonValue* topology = root.Find("modelTopology");
  if (topology == nullptr) {
    return absl::InvalidArgumentError(
        "the JSON has no member 'modelTopology', expected the model.json of a graph model");
  }
  PF_ASSIGN_OR_RETURN(const JsonValue members, Outermost(topology->raw.empty() ? "null" : topology->raw));
  const JsonValue* format = root.Find("format");
  const bool is_keras = members.Find("model_config") != nullptr || members.Find("class_name") != nullptr;
  if (is_keras || (format != nullptr && format->text == "layers-model")) {
    return absl::InvalidArgumentError(
        "the JSON is a layers model (Keras), expected a graph model; convert it first (tensorflowjs_converter "
        "--input_format=tfjs_layers_model --output_format=tfjs_graph_model)");
  }
  const JsonValue* nodes = members.Find("node");
  if (nodes == nullptr || nodes->kind != Kind::kArray) {
    return absl::InvalidArgumentError("member 'modelTopology': expected an object with an array 'node'");
  }
  return topology->raw;
}

absl::StatusOr<graphdef::GraphDef> ParseTopology(absl::string_view json) {
  graphdef::GraphDef message;
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const pb::LogSilencer silence;  // Errors are returned as a status.
  const pb::util::Status status = pb::util::JsonStringToMessage({json.data(), json.size()}, &message, options);
  if (status.ok()) return message;
  const std::string reason(status.message().data(), status.message().size());
  // protobuf's message contains the rest of the text after a line feed, control characters of the text, and quotes of
  // either kind.
  const absl::string_view line = absl::string_view(reason).substr(0, reason.find('\n'));
  return absl::InvalidArgumentError(absl::StrCat(
      "member 'modelTopology': ",
      Printable(absl::StrReplaceAll(absl::StripSuffix(line, "."), {{"permafrost.graphdef.", ""}, {"\"", "'"}}))));
}

DType TypeOf(const graphdef::NodeDef& node) {
  const auto type = node.attr().find("dtype");
  return type == node.attr().end() ? DType::kInvalid : static_cast<DType>(type->second.type());
}

// True if the tensor has elements. A tensor with only type and shape would be read as zeros.
bool HasElements(const graphdef::TensorProto& tensor) {
  for (const graphdef::TensorShapeProto::Dim& dim : tensor.tensor_shape().dim()) {
    if (dim.size() == 0) return true;  // The tensor is empty.
  }
  graphdef::TensorProto header;
  header.set_dtype(tensor.dtype());
  *header.mutable_tensor_shape() = tensor.tensor_shape();
  header.set_version_number(tensor.version_number());
  return tensor.ByteSizeLong() > header.ByteSizeLong();
}

absl::Status CheckConstant(const graphdef::NodeDef& node, const TfjsWeights& weights) {
  if (node.op() != "Const" || weights.Has(node.name())) return absl::OkStatus();
  const auto value = node.attr().find("value");
  if (value != node.attr().end() && HasElements(value->second.tensor())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("node ", Quoted(node.name()), " (Const): has neither a weight in the manifest nor a value"));
}

absl::Status CheckConstants(const graphdef::GraphDef& message, const TfjsWeights& weights) {
  for (const graphdef::NodeDef& node : message.node()) PF_RETURN_IF_ERROR(CheckConstant(node, weights));
  for (const graphdef::FunctionDef& function : message.library().function()) {
    for (const graphdef::NodeDef& node : function.node_def()) PF_RETURN_IF_ERROR(CheckConstant(node, weights));
  }
  return absl::OkStatus();
}

// Sets the constants of functions before the message becomes a graph, because a graph stores functions as bytes.
absl::Status FillFunctions(TfjsWeights* weights, graphdef::GraphDef* message) {
  for (graphdef::FunctionDef& function : *message->mutable_library()->mutable_function()) {
    for (graphdef::NodeDef& node : *function.mutable_node_def()) {
      if (node.op() != "Const" || !weights->Has(node.name())) continue;
      PF_ASSIGN_OR_RETURN(const Tensor value, weights->Read(node.name(), TypeOf(node)));
      StringSink encoded;
      PF_RETURN_IF_ERROR(WriteTensorProto(value, &encoded));
      if (!(*node.mutable_attr())["value"].mutable_tensor()->ParseFromString(encoded.text())) {
        return absl::InternalError(absl::StrCat("the weight ", Quoted(node.name()), " cannot be encoded"));
      }
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<const std::string> Serialized(const graphdef::GraphDef& message) {
  auto binary = std::make_shared<std::string>();
  const pb::LogSilencer reader_reports;
  pb::io::StringOutputStream raw_output(binary.get());
  pb::io::CodedOutputStream output(&raw_output);
  output.SetSerializationDeterministic(true);  // Map entries are sorted by key.
  message.SerializeToCodedStream(&output);
  output.Trim();
  return binary;
}

// Replaces the value of a constant by its weight, if there is one.
absl::Status FillConstant(TfjsWeights* weights, Node* node) {
  if (!weights->Has(node->name())) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node, "dtype"));
  PF_ASSIGN_OR_RETURN(Tensor value, weights->Read(node->name(), dtype));
  if (const AttrValue* old = node->FindAttr("value"); old != nullptr) {
    DType old_type;
    Shape old_shape;
    PF_RETURN_IF_ERROR(old->TensorTypeAndShape(&old_type, &old_shape));
    if (!old_shape.IsCompatibleWith(value.shape())) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the shape ", old_shape.ToString(), ", but its weight ", value.shape().ToString()));
    }
  }
  node->SetAttr("value", AttrValue::OfTensor(std::move(value)));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EndpointNames(const JsonValue& signature, absl::string_view role) {
  std::vector<std::string> names;
  const JsonValue* endpoints = signature.Find(role);
  if (endpoints == nullptr || endpoints->kind == Kind::kNull) return names;
  if (endpoints->kind != Kind::kObject) {
    return absl::InvalidArgumentError(absl::StrCat("member '", role, "': expected an object"));
  }
  for (const auto& [key, endpoint] : endpoints->members) {
    const JsonValue* name = endpoint.Find("name");
    const std::string& text = name != nullptr && name->kind == Kind::kText ? name->text : key;
    names.emplace_back(absl::StripSuffix(text, ":0"));
  }
  return names;
}

// Declares inputs and outputs in the order of the signature.
absl::Status DeclareSignature(const JsonValue& root, Graph* graph) {
  JsonValue holder;
  const JsonValue* signature = root.Find("signature");
  if (signature == nullptr || signature->kind != Kind::kObject) {
    const JsonValue* metadata = root.Find("userDefinedMetadata");
    if (metadata == nullptr || metadata->kind != Kind::kObject) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(holder, Outermost(metadata->raw));
    signature = holder.Find("signature");
    if (signature == nullptr || signature->kind != Kind::kObject) return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const JsonValue built, Built(*signature));
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> inputs, EndpointNames(built, "inputs"));
  PF_ASSIGN_OR_RETURN(const std::vector<std::string> outputs, EndpointNames(built, "outputs"));
  return graph->DeclareInterface(inputs, outputs);
}

absl::StatusOr<std::unique_ptr<Graph>> ReadTfjs(const ModelSource& source, const OpenOptions& options) {
  if (source.bytes->size() > kMaxTfjsJsonBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON has ", source.bytes->size(), " bytes, expected at most ", kMaxTfjsJsonBytes));
  }
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  PF_ASSIGN_OR_RETURN(const JsonValue root, Outermost(file.bytes));
  PF_ASSIGN_OR_RETURN(const absl::string_view topology, FindTopology(root));
  TfjsWeights weights;
  if (const JsonValue* manifest = root.Find("weightsManifest"); manifest != nullptr) {
    if (source.files == nullptr) {
      return absl::InvalidArgumentError("the weights are in other files, expected a model with a path");
    }
    PF_ASSIGN_OR_RETURN(const JsonValue built, manifest->raw.empty() ? *manifest : Built(*manifest));
    PF_ASSIGN_OR_RETURN(weights, TfjsWeights::Open(built, *source.files, source.path, options.max_model_bytes));
  }
  PF_ASSIGN_OR_RETURN(graphdef::GraphDef message, ParseTopology(topology));
  PF_RETURN_IF_ERROR(CheckConstants(message, weights));
  if (message.has_library()) PF_RETURN_IF_ERROR(FillFunctions(&weights, &message));
  const std::shared_ptr<const std::string> binary = Serialized(message);
  message.Clear();
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, ReadGraphDef(*binary, binary, /*name_offsets=*/false));
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kConst) PF_RETURN_IF_ERROR(Annotate(FillConstant(&weights, node), node->Describe()));
  }
  PF_RETURN_IF_ERROR(SpellTfjsOps(graph.get()));
  PF_RETURN_IF_ERROR(Annotate(DeclareSignature(root, graph.get()), "signature"));
  return graph;
}

// Reads the model. Errors have one line: JSON texts may hold line feeds, and names in messages of the graph do not
// escape them.
absl::StatusOr<std::unique_ptr<Graph>> ReadWithOneLineErrors(const ModelSource& source, const OpenOptions& options) {
  absl::StatusOr<std::unique_ptr<Graph>> graph = ReadTfjs(source, options);
  if (graph.ok() || !absl::StrContains(graph.status().message(), '\n')) return graph;
  return absl::Status(graph.status().code(), Printable(absl::StrReplaceAll(graph.status().message(), {{"\n", "; "}})));
}

}  // namespace

const ModelFormat kTfjsFormat{"tfjs", "tfjs graph model", ".json", MayBeTfjs, ReadWithOneLineErrors, nullptr, nullptr};

}  // namespace permafrost
