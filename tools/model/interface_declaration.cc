// Declares an interface from flags and from detected inputs and outputs.
#include "tools/model/interface_declaration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/all_errors.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "io/formats/tflite/metadata.h"
#include "tools/command_line/flags.h"

namespace permafrost {
namespace {

// Maximum number of candidates in an error.
constexpr size_t kMaxListed = 20;

// Replaces names of no node that are arguments of the model's signatures by the nodes that these name.
std::vector<std::string> WithSignatureNames(const Graph& graph, std::vector<std::string> names) {
  const auto is_node = [&graph](const std::string& name) { return graph.Find(name) != nullptr; };
  if (std::all_of(names.begin(), names.end(), is_node)) return names;
  const std::vector<std::pair<std::string, std::string>> arguments = SignatureNames(graph);
  for (std::string& name : names) {
    if (is_node(name)) continue;
    for (const auto& [argument, node] : arguments) {
      if (argument == name && graph.Find(node) != nullptr) name = node;
    }
  }
  return names;
}

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

// Returns the inputs or outputs that could be meant: "; the inputs that were found are 'a', 'b'".
std::string FoundNames(const Graph& graph, absl::string_view kind) {
  const FoundInterface found = FindInterface(graph);
  std::vector<std::string> names = ChosenNames(kind == "input" ? found.inputs : found.outputs);
  if (names.empty()) return "";
  const size_t omitted = names.size() - std::min(names.size(), kMaxListed);
  names.resize(names.size() - omitted);
  return absl::StrCat("; the ", kind, "s that were found are '", absl::StrJoin(names, "', '"), "'",
                      omitted == 0 ? "" : absl::StrCat(" and ", omitted, " more"));
}

// Returns one error for all names that are not nodes, each with similar names, or else with those that were found.
absl::Status CheckNames(const Graph& graph, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
  std::vector<absl::Status> errors;
  std::vector<absl::string_view> known;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) known.push_back(node->name());
  for (const auto& [kind, names] : {std::pair{"input", &inputs}, std::pair{"output", &outputs}}) {
    bool has_listed = false;
    for (const std::string& text : *names) {
      const absl::string_view name = absl::string_view(text).substr(0, text.rfind(':'));
      if (graph.Find(name) != nullptr) continue;
      std::string candidates = DidYouMean(name, known);
      if (candidates.empty() && !has_listed) {
        candidates = FoundNames(graph, kind);
        has_listed = true;
      }
      errors.push_back(
          absl::InvalidArgumentError(absl::StrCat(kind, " '", text, "' is not a node of the graph", candidates)));
    }
  }
  return AllErrors(errors);
}

// Adds a note on each name that was not given.
void AddNotes(absl::string_view kind, InterfaceChoice::Source source, const std::vector<std::string>& names,
              const std::vector<FoundEndpoint>& found, std::vector<std::string>* notes) {
  if (source == InterfaceChoice::Source::kDeclared) {
    for (const std::string& name : names) {
      notes->push_back(absl::StrCat(kind, " '", name, "': the model's signature has it"));
    }
  }
  if (source != InterfaceChoice::Source::kFound) return;
  for (const FoundEndpoint& endpoint : found) {
    notes->push_back(absl::StrCat(endpoint.is_chosen ? kind : absl::StrCat("not an ", kind), " '", endpoint.name(),
                                  "' (", endpoint.node->op().name(), "): ", endpoint.reason));
  }
  if (found.empty()) notes->push_back(absl::StrCat("no ", kind, "s"));
}

}  // namespace

absl::Status DeclareOrFindInterface(const std::optional<std::string>& inputs, const std::optional<std::string>& outputs,
                                    Graph* graph, std::vector<std::string>* notes) {
  const std::vector<std::string> input_names = WithSignatureNames(*graph, SplitList(inputs.value_or("")));
  const std::vector<std::string> output_names =
      WithAllPorts(*graph, WithSignatureNames(*graph, SplitList(outputs.value_or(""))));
  PF_RETURN_IF_ERROR(CheckNames(*graph, input_names, output_names));
  const InterfaceChoice choice = ChooseInterface(*graph, inputs.has_value() ? &input_names : nullptr,
                                                 outputs.has_value() ? &output_names : nullptr);
  const FoundInterface& found = choice.found;
  if (!found.outputs_doubt.empty()) return Doubt("outputs", found.outputs_doubt, found.outputs);
  if (!found.inputs_doubt.empty()) return Doubt("inputs", found.inputs_doubt, found.inputs);
  PF_RETURN_IF_ERROR(CheckNames(*graph, choice.inputs, choice.outputs));
  AddNotes("input", choice.inputs_source, choice.inputs, found.inputs, notes);
  AddNotes("output", choice.outputs_source, choice.outputs, found.outputs, notes);
  return graph->DeclareInterface(choice.inputs, choice.outputs);
}

}  // namespace permafrost
