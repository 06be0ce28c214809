// Declares an interface from flags and from detected inputs and outputs.
#include "tools/model/interface_declaration.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/command_line/flags.h"

namespace permafrost {
namespace {

// Maximum number of candidates in an error.
constexpr size_t kMaxListed = 20;

// Expands each output without a port to all outputs of its node: "heads" becomes "heads" and "heads:1".
std::vector<std::string> WithAllPorts(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const Node* node = graph.Find(name);
    if (node == nullptr) {
      all.push_back(name);
      continue;
    }
    for (const int port : OutputPorts(*node)) all.push_back(port == 0 ? name : absl::StrCat(name, ":", port));
  }
  return all;
}

void AppendCandidates(absl::string_view kind, const std::vector<FoundEndpoint>& endpoints, std::string* text) {
  for (size_t i = 0; i < endpoints.size() && i < kMaxListed; ++i) {
    absl::StrAppend(text, "\n  ", kind, " '", endpoints[i].name(), "' (", endpoints[i].node->op().name(),
                    "): ", endpoints[i].reason);
  }
  if (endpoints.size() > kMaxListed) absl::StrAppend(text, "\n  and ", endpoints.size() - kMaxListed, " more");
}

absl::Status Doubt(absl::string_view flag, absl::string_view doubt, const std::vector<FoundEndpoint>& endpoints) {
  std::vector<std::string> names = ChosenNames(endpoints);
  if (names.empty()) {
    for (size_t i = 0; i < endpoints.size() && i < 1; ++i) names.push_back(endpoints[i].name());
  }
  std::string text = absl::StrCat("which ", flag, " are meant is not clear: ", doubt, "; name them");
  if (!names.empty()) {
    absl::StrAppend(&text, ", for example --", flag, "='", absl::StrJoin(names, ","), "'");
  }
  AppendCandidates("candidate", endpoints, &text);
  return absl::InvalidArgumentError(text);
}

// Returns the nodes of the declared names.
absl::StatusOr<std::vector<Node*>> NamedNodes(const Graph& graph, const std::vector<Endpoint>& endpoints) {
  std::vector<Node*> nodes;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.node == nullptr) {
      std::vector<absl::string_view> names;
      for (const Node* node = graph.first(); node != nullptr; node = node->next()) names.push_back(node->name());
      const absl::string_view name = absl::string_view(endpoint.text).substr(0, endpoint.text.rfind(':'));
      return absl::InvalidArgumentError(
          absl::StrCat("input '", endpoint.text, "' is not a node of the graph", DidYouMean(name, names)));
    }
    nodes.push_back(endpoint.node);
  }
  return nodes;
}

// Uses the interface that the graph came with for the names that are not given.
absl::Status DeclareAsSigned(const std::optional<std::string>& inputs, const std::optional<std::string>& outputs,
                             Graph* graph, std::vector<std::string>* notes) {
  const auto names = [&](absl::string_view kind, const std::optional<std::string>& given,
                         const std::vector<Endpoint>& signed_ones) {
    if (given.has_value()) return kind == "output" ? WithAllPorts(*graph, SplitList(*given)) : SplitList(*given);
    std::vector<std::string> texts;
    for (const Endpoint& endpoint : signed_ones) {
      texts.push_back(endpoint.text);
      notes->push_back(absl::StrCat(kind, " '", endpoint.text, "': the model's signature has it"));
    }
    return texts;
  };
  const std::vector<std::string> input_names = names("input", inputs, graph->inputs());
  const std::vector<std::string> output_names = names("output", outputs, graph->outputs());
  PF_RETURN_IF_ERROR(graph->DeclareInterface(input_names, output_names));
  return NamedNodes(*graph, graph->inputs()).status();
}

}  // namespace

absl::Status DeclareOrFindInterface(const std::optional<std::string>& inputs, const std::optional<std::string>& outputs,
                                    Graph* graph, std::vector<std::string>* notes) {
  if (!graph->outputs().empty() && !(inputs.has_value() && outputs.has_value())) {
    return DeclareAsSigned(inputs, outputs, graph, notes);
  }
  std::vector<std::string> input_names = SplitList(inputs.value_or(""));
  std::vector<std::string> output_names = WithAllPorts(*graph, SplitList(outputs.value_or("")));
  PF_RETURN_IF_ERROR(graph->DeclareInterface(input_names, output_names));
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> input_nodes, NamedNodes(*graph, graph->inputs()));
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> output_nodes, NamedNodes(*graph, graph->outputs()));
  if (inputs.has_value() && outputs.has_value()) return absl::OkStatus();
  const FoundInterface found =
      FindInterface(*graph, inputs.has_value() ? &input_nodes : nullptr, outputs.has_value() ? &output_nodes : nullptr);
  if (!found.outputs_doubt.empty()) return Doubt("outputs", found.outputs_doubt, found.outputs);
  if (!found.inputs_doubt.empty()) return Doubt("inputs", found.inputs_doubt, found.inputs);
  const auto note = [&](absl::string_view kind, const std::vector<FoundEndpoint>& endpoints) {
    for (const FoundEndpoint& endpoint : endpoints) {
      notes->push_back(absl::StrCat(endpoint.is_chosen ? kind : absl::StrCat("not an ", kind), " '", endpoint.name(),
                                    "' (", endpoint.node->op().name(), "): ", endpoint.reason));
    }
    if (endpoints.empty()) notes->push_back(absl::StrCat("no ", kind, "s"));
  };
  if (!inputs.has_value()) {
    input_names = ChosenNames(found.inputs);
    note("input", found.inputs);
  }
  if (!outputs.has_value()) {
    output_names = ChosenNames(found.outputs);
    note("output", found.outputs);
  }
  return graph->DeclareInterface(input_names, output_names);
}

}  // namespace permafrost
