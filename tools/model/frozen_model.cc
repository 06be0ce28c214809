// Combines the graph, the checkpoint and the names that connect them.
#include "tools/model/frozen_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/analysis/interface_finder.h"
#include "graph/base/status.h"
#include "io/checked_files.h"
#include "io/formats/checkpoint/checkpoint.h"
#include "io/formats/object_graph.h"
#include "io/formats/tfjs_weights.h"
#include "io/model_file.h"
#include "tools/model/signature_names.h"
#include "transforms/freeze/saved_names.h"

namespace permafrost {
namespace {

// The variables of a model without variables.
class NoVariables : public VariableSource {
 public:
  absl::Span<const VariableInfo> variables() const override { return {}; }
  absl::StatusOr<Tensor> Read(absl::string_view name) const override {
    return absl::NotFoundError(absl::StrCat("there is no variable '", name, "'"));
  }
};

bool HasVariables(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kVariable || node->op() == ops::kVariableV2 || node->op() == ops::kVarHandleOp) return true;
  }
  return false;
}

absl::StatusOr<MetaGraph> OpenGraph(FileSystem& files, const FrozenModelRequest& request) {
  if (!request.saved_model.empty()) return OpenSavedModel(files, request.saved_model, request.tags);
  if (!request.meta_graph.empty()) return OpenMetaGraph(files, request.meta_graph);
  MetaGraph meta;
  PF_ASSIGN_OR_RETURN(meta.graph, OpenModel(files, request.graph, request.open));
  return meta;
}

// Declares the inputs and outputs of the signature as those of the graph.
absl::Status DeclareSignature(const Signature& signature, const std::vector<std::string>& outputs, Graph* graph) {
  std::vector<std::string> input_names, output_names = outputs;
  const auto add = [&](absl::string_view kind, const SignatureTensor& tensor, std::vector<std::string>* names) {
    if (tensor.encoding == SignatureTensor::Encoding::kDense) {
      names->push_back(tensor.name);
      return absl::OkStatus();
    }
    return absl::UnimplementedError(
        absl::StrCat("signature '", signature.name, "': ", kind, " '", tensor.key, "' is ",
                     tensor.encoding == SignatureTensor::Encoding::kSparse ? "a sparse" : "a composite",
                     " tensor, expected dense ones; name the outputs instead (--output_node_names)"));
  };
  for (const SignatureTensor& input : signature.inputs) PF_RETURN_IF_ERROR(add("input", input, &input_names));
  for (const SignatureTensor& output : signature.outputs) {
    if (outputs.empty()) PF_RETURN_IF_ERROR(add("output", output, &output_names));
  }
  for (const std::string& name : input_names) {
    if (graph->Find(absl::string_view(name).substr(0, name.rfind(':'))) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("signature '", signature.name, "': input '", name, "' is not in the graph"));
  }
  return Annotate(graph->DeclareInterface(input_names, output_names), absl::StrCat("signature '", signature.name, "'"));
}

absl::StatusOr<std::unique_ptr<VariableSource>> OpenVariables(FileSystem& files, const FrozenModelRequest& request,
                                                              const Graph& graph) {
  if (!request.checkpoint.empty()) return OpenCheckpoint(files, request.checkpoint, request.open);
  if (request.saved_model.empty()) {
    return absl::InvalidArgumentError("--input_checkpoint is missing: it has the values of the variables");
  }
  // TensorFlow writes no checkpoint for a model without variables.
  const std::string prefix = VariablesPrefix(request.saved_model);
  if (!HasVariables(graph) && !files.Exists(absl::StrCat(prefix, ".index"))) return std::make_unique<NoVariables>();
  return OpenCheckpoint(files, prefix, request.open);
}

// Output names, some of which are keys of the signature. `names` are tensor names; keys[i] is empty if the caller named
// a node.
struct NamedOutputs {
  std::vector<std::string> names;
  std::vector<std::string> keys;
};

NamedOutputs ResolveOutputs(const FrozenModelRequest& request, const MetaGraph& meta) {
  NamedOutputs outputs;
  const absl::StatusOr<const Signature*> signature = FindSignature(meta, request.signature);
  for (const std::string& name : request.outputs) {
    outputs.names.push_back(name);
    outputs.keys.emplace_back();
    const bool is_node = meta.graph->Find(absl::string_view(name).substr(0, name.rfind(':'))) != nullptr;
    if (is_node || !signature.ok()) continue;
    for (const SignatureTensor& tensor : (*signature)->outputs) {
      if (tensor.key != name || tensor.encoding != SignatureTensor::Encoding::kDense) continue;
      outputs.names.back() = tensor.name;
      outputs.keys.back() = tensor.key;
    }
  }
  return outputs;
}

// Reads the asset file that the tensor of that node represents.
absl::StatusOr<std::string> ReadAsset(FileSystem& files, const std::string& folder, const MetaGraph& meta,
                                      absl::string_view node) {
  for (const MetaGraph::Asset& asset : meta.assets) {
    if (absl::string_view(asset.tensor).substr(0, asset.tensor.rfind(':')) != node) continue;
    if (!StaysInFolder(asset.file)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the asset '", asset.file, "', expected a path within the folder 'assets'"));
    }
    PF_ASSIGN_OR_RETURN(const FileView file, MapFileIn(files, absl::StrCat(folder, "/assets/"), asset.file));
    return std::string(file.bytes);
  }
  return absl::NotFoundError(absl::StrCat("the SavedModel has no asset file for '", node, "'"));
}

}  // namespace

absl::StatusOr<FrozenModel> OpenFrozenModel(FileSystem& files, const FrozenModelRequest& request) {
  PF_ASSIGN_OR_RETURN(MetaGraph meta, OpenGraph(files, request));
  const NamedOutputs outputs = ResolveOutputs(request, meta);
  FrozenModel frozen;
  frozen.graph = std::move(meta.graph);
  const bool is_saved_model = !request.saved_model.empty();
  const bool finds_outputs =
      request.finds_outputs && request.outputs.empty() && !is_saved_model && meta.signatures.empty();
  if (finds_outputs) {
    // Even if the choice is in doubt: the caller may name outputs of the frozen graph.
    const std::vector<std::string> found = ChosenNames(FindInterface(*frozen.graph).outputs);
    if (found.empty()) return absl::InvalidArgumentError("found no output in the graph; name some (freeze_graph)");
    PF_RETURN_IF_ERROR(frozen.graph->DeclareInterface({}, found));
  } else if (request.outputs.empty() || !request.signature.empty()) {
    if (!is_saved_model && meta.signatures.empty()) {
      return absl::InvalidArgumentError("--output_node_names is missing: what the outputs need is what is kept");
    }
    PF_ASSIGN_OR_RETURN(const Signature* signature, FindSignature(meta, request.signature));
    PF_RETURN_IF_ERROR(DeclareSignature(*signature, outputs.names, frozen.graph.get()));
    frozen.signature = *signature;
  } else {
    PF_RETURN_IF_ERROR(frozen.graph->DeclareInterface({}, outputs.names));
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<VariableSource> variables, OpenVariables(files, request, *frozen.graph));
  if (!is_saved_model && !HasVariables(*frozen.graph)) {
    return absl::FailedPreconditionError(
        "the graph has no variables: it is frozen already, and a graph is not frozen twice");
  }
  FreezeOptions options = request.options;
  if (!request.saver.empty()) {
    PF_ASSIGN_OR_RETURN(meta.restore_op, OpenSaver(files, request.saver));
  }
  if (meta.restore_op.empty()) meta.restore_op = request.restore_op;
  PF_ASSIGN_OR_RETURN(options.naming.saved_names, FindSavedNames(*frozen.graph, meta.restore_op));
  PF_ASSIGN_OR_RETURN(options.naming.keys_by_full_name, KeysByFullName(*variables));
  options.table_initializer = meta.table_initializer.substr(0, meta.table_initializer.rfind(':'));
  if (is_saved_model) {
    options.read_asset = [&](absl::string_view node) { return ReadAsset(files, request.saved_model, meta, node); };
  }
  PF_ASSIGN_OR_RETURN(frozen.report, Freeze(*variables, options, frozen.graph.get()));
  if (finds_outputs) {
    PF_RETURN_IF_ERROR(frozen.graph->DeclareInterface({}, {}));
    return frozen;
  }
  if (request.outputs.empty()) {
    PF_RETURN_IF_ERROR(NameBySignature(frozen.graph.get(), &*frozen.signature));
  } else {
    PF_RETURN_IF_ERROR(NameOutputs(frozen.graph.get(), outputs.keys));
  }
  return frozen;
}

}  // namespace permafrost
