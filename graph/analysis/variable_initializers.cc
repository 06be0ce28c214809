// Pairs assignments with the variables that they initialise.
#include "graph/analysis/variable_initializers.h"

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

void KeepConstantInitializers(const Graph& graph, std::vector<bool>* needed) {
  for (const Node* node : VariableInitializers(graph)) {
    if (!AssignsConst(*node) || !(*needed)[node->input(0).node->id()]) continue;
    (*needed)[node->id()] = true;
    (*needed)[node->input(1).node->id()] = true;
  }
}

}  // namespace permafrost
