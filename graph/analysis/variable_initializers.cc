// Pairs assignments with the variables that they initialise.
#include "graph/analysis/variable_initializers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

bool Assigns(const Node& node) {
  return node.op() == ops::kAssignVariableOp && node.num_data_inputs() == 2 &&
         node.input(0).node->op() == ops::kVarHandleOp;
}

bool AssignsConst(const Node& node) { return node.input(1).node->op() == ops::kConst; }

bool HasInitializersName(const Node& node) { return node.name() == VariableInitializerName(*node.input(0).node); }

}  // namespace

std::string VariableInitializerName(const Node& variable) { return absl::StrCat(variable.name(), "/Assign"); }

std::vector<Node*> VariableInitializers(const Graph& graph) {
  std::vector<Node*> outputs;
  for (const Endpoint& output : graph.outputs()) {
    if (output.node != nullptr) outputs.push_back(output.node);
  }
  const std::vector<bool> runs = ReachedBackwards(graph, outputs, {});
  // The candidates of a variable, by its id.
  struct Candidates {
    Node* named = nullptr;
    std::vector<Node*> constant, isolated;  // Constant ones, and those of them without control edges.
  };
  absl::flat_hash_map<uint32_t, Candidates> candidates;
  std::vector<Node*> assigns;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!Assigns(*node) || runs[node->id()]) continue;
    assigns.push_back(node);
    Candidates& found = candidates[node->input(0).node->id()];
    if (HasInitializersName(*node)) found.named = node;
    if (!AssignsConst(*node)) continue;
    found.constant.push_back(node);
    if (node->uses().empty() && node->num_inputs() == node->num_data_inputs()) found.isolated.push_back(node);
  }
  std::vector<Node*> initializers;
  for (Node* node : assigns) {
    const Candidates& found = candidates[node->input(0).node->id()];
    const Node* chosen = found.named;
    if (chosen == nullptr && found.constant.size() == 1) chosen = found.constant[0];
    if (chosen == nullptr && found.isolated.size() == 1) chosen = found.isolated[0];
    if (node == chosen) initializers.push_back(node);
  }
  return initializers;
}

bool IsTable(Op op) {
  return op == ops::kHashTable || op == ops::kHashTableV2 || op == ops::kMutableHashTable ||
         op == ops::kMutableHashTableV2;
}

bool FillsTable(Op op) {
  return op == ops::kInitializeTable || op == ops::kInitializeTableV2 || op == ops::kLookupTableImport ||
         op == ops::kLookupTableImportV2 || op == ops::kInitializeTableFromTextFile ||
         op == ops::kInitializeTableFromTextFileV2;
}

bool FunctionsMayUse(const Graph& graph, const Node& resource) {
  if (graph.library().empty()) return false;
  const std::string shared_name = StringAttr(resource, "shared_name").value_or("");
  return absl::StrContains(graph.library(), shared_name.empty() ? resource.name() : absl::string_view(shared_name));
}

void KeepConstantInitializers(const Graph& graph, std::vector<bool>* needed) {
  const auto is_needed = [&](const Node& resource) {
    return (*needed)[resource.id()] || FunctionsMayUse(graph, resource);
  };
  const auto keep = [&](const Node& node) {
    (*needed)[node.id()] = true;
    for (int i = 0; i < node.num_data_inputs(); ++i) (*needed)[node.input(i).node->id()] = true;
  };
  for (const Node* node : VariableInitializers(graph)) {
    if (AssignsConst(*node) && is_needed(*node->input(0).node)) keep(*node);
  }
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!FillsTable(node->op()) || node->num_data_inputs() < 2 || !IsTable(node->input(0).node->op())) continue;
    bool is_constant = true;
    for (int i = 1; i < node->num_data_inputs(); ++i) is_constant &= node->input(i).node->op() == ops::kConst;
    if (is_constant && is_needed(*node->input(0).node)) keep(*node);
  }
}

}  // namespace permafrost
