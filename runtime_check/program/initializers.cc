// Finds the initialisers of tables and variables by the name of the resource.
#include "runtime_check/program/initializers.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

bool IsVariable(Op op) { return op == ops::kVarHandleOp; }

std::string ResourceName(const Node& node) {
  const std::string shared_name = StringAttr(node, "shared_name").value_or("");
  return absl::StrCat(StringAttr(node, "container").value_or(""), "/",
                      shared_name.empty() ? std::string(node.name()) : shared_name);
}

bool NeedsPlaceholder(const Graph& graph, Node* node) {
  const std::vector<bool> reached = ReachedBackwards(graph, {node}, {});
  for (const Node* other = graph.first(); other != nullptr; other = other->next()) {
    if (!reached[other->id()]) continue;
    if (other->op() == ops::kPlaceholder || other->op() == ops::kPlaceholderV2) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> InitializersOf(const Graph& graph, const Program& program) {
  if (!kHoldsResources) return {};
  absl::flat_hash_set<std::string> tables, variables;
  absl::flat_hash_set<const Node*> running;
  for (const ProgramNode& node : program.nodes) {
    const Op op = node.node->op();
    if (IsTable(op)) tables.insert(ResourceName(*node.node));
    if (IsVariable(op)) variables.insert(ResourceName(*node.node));
    if (FillsTable(op) || op == ops::kAssignVariableOp) running.insert(node.node);
  }
  if (selection::kHoldsFunctions && !program.calls.empty()) {
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (IsTable(node->op()) && FunctionsMayUse(graph, *node)) tables.insert(ResourceName(*node));
      if (IsVariable(node->op()) && FunctionsMayUse(graph, *node)) variables.insert(ResourceName(*node));
    }
  }
  std::vector<std::string> names;
  if (!variables.empty()) {
    for (Node* node : VariableInitializers(graph)) {
      if (running.contains(node) || !variables.contains(ResourceName(*node->input(0).node))) continue;
      if (!NeedsPlaceholder(graph, node)) names.emplace_back(node->name());
    }
  }
  if (tables.empty()) return names;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!FillsTable(node->op()) || running.contains(node) || node->num_data_inputs() == 0) continue;
    const Node* table = node->input(0).node;
    if (IsTable(table->op()) && tables.contains(ResourceName(*table))) names.emplace_back(node->name());
  }
  return names;
}

}  // namespace permafrost
