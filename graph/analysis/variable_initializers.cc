// Pairs assignments with the variables that they initialise.
#include "graph/analysis/variable_initializers.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  // By id of the variable.
  std::vector<bool> has_named(graph.id_limit(), false);
  std::vector<uint8_t> num_const(graph.id_limit(), 0);
  std::vector<Node*> assigns, initializers;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!Assigns(*node)) continue;
    assigns.push_back(node);
    const uint32_t variable = node->input(0).node->id();
    if (HasInitializersName(*node)) has_named[variable] = true;
    if (AssignsConst(*node) && num_const[variable] < 2) ++num_const[variable];
  }
  for (Node* node : assigns) {
    const uint32_t variable = node->input(0).node->id();
    const bool is_only = AssignsConst(*node) && num_const[variable] == 1;
    if (has_named[variable] ? HasInitializersName(*node) : is_only) initializers.push_back(node);
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
