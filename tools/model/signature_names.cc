// Renames placeholders first, since an output may be a placeholder.
#include "tools/model/signature_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Renames the node called `name`, so that another node can take the name.
absl::Status FreeName(Graph* graph, absl::string_view name) {
  Node* holder = graph->Find(name);
  return holder == nullptr ? absl::OkStatus() : graph->Rename(holder, graph->UniqueName(name));
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::StatusOr<std::string> AddOutput(Graph* graph, const Endpoint& output, std::string name, bool is_taken) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*output.node));
  if (output.node->name() == name && types.size() == 1) return name;
  if (static_cast<size_t>(output.port) >= types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output.text, "': ", output.node->Describe(), " has ", types.size(), " outputs"));
  }
  if (is_taken) {
    name = graph->UniqueName(name);
  } else {
    PF_RETURN_IF_ERROR(FreeName(graph, name));
  }
  PF_ASSIGN_OR_RETURN(Node * identity, graph->AddNode(name, ops::kIdentity));
  graph->AddInput(identity, {output.node, output.port});
  identity->SetAttr("T", AttrValue::Type(RemoveRef(types[static_cast<size_t>(output.port)])));
  return name;
}

}  // namespace

std::string NodeNameOfKey(absl::string_view key) {
  std::string name;
  for (const char c : key) {
    const bool is_inner = c == '_' || c == '/' || c == '\\' || c == '>' || c == '-';
    const bool is_allowed = absl::ascii_isalnum(c) || c == '.' || (is_inner && !name.empty());
    name.push_back(is_allowed ? c : name.empty() ? '.' : '_');
  }
  return name;
}

absl::Status NameBySignature(Graph* graph, Signature* signature) {
  if (graph->inputs().size() != signature->inputs.size() || graph->outputs().size() != signature->outputs.size()) {
    return absl::InternalError("the graph does not declare what its signature has");
  }
  std::vector<std::string> inputs;
  for (size_t i = 0; i < signature->inputs.size(); ++i) {
    const Endpoint input = graph->inputs()[i];
    const std::string name = NodeNameOfKey(signature->inputs[i].key);
    // An input in the middle of the graph keeps its name. So does the second of two keys for one node.
    const bool is_placeholder =
        input.node != nullptr && (input.node->op() == ops::kPlaceholder || input.node->op() == ops::kPlaceholderV2 ||
                                  input.node->op() == ops::kPlaceholderWithDefault);
    if (!is_placeholder || name.empty() || Contains(inputs, std::string(input.node->name()))) {
      inputs.push_back(input.text);
      continue;
    }
    if (input.node->name() != name) {
      PF_RETURN_IF_ERROR(FreeName(graph, name));
      PF_RETURN_IF_ERROR(graph->Rename(input.node, name));
    }
    inputs.push_back(name);
  }
  std::vector<std::string> outputs, keys;
  for (const Endpoint& output : graph->outputs()) outputs.push_back(output.text);
  for (const SignatureTensor& output : signature->outputs) keys.push_back(output.key);
  PF_RETURN_IF_ERROR(graph->DeclareInterface(inputs, outputs));
  PF_RETURN_IF_ERROR(NameOutputs(graph, keys));
  for (size_t i = 0; i < inputs.size(); ++i) signature->inputs[i].name = graph->inputs()[i].text;
  for (size_t i = 0; i < keys.size(); ++i) signature->outputs[i].name = graph->outputs()[i].text;
  return absl::OkStatus();
}

absl::Status NameOutputs(Graph* graph, absl::Span<const std::string> keys) {
  const std::vector<Endpoint> declared = graph->outputs();
  std::vector<std::string> inputs, outputs;
  for (const Endpoint& input : graph->inputs()) inputs.push_back(input.text);
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string name = NodeNameOfKey(keys[i]);
    if (name.empty() || declared[i].node == nullptr) {
      outputs.push_back(graph->outputs()[i].text);
      continue;
    }
    const bool is_taken = Contains(inputs, name) || Contains(outputs, name);
    PF_ASSIGN_OR_RETURN(outputs.emplace_back(), AddOutput(graph, declared[i], name, is_taken));
  }
  return graph->DeclareInterface(inputs, outputs);
}

}  // namespace permafrost
