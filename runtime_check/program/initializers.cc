// Finds the initialisers of tables by table name.
#include "runtime_check/program/initializers.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace {

bool IsTable(Op op) {
  return op == ops::kHashTable || op == ops::kHashTableV2 || op == ops::kMutableHashTable ||
         op == ops::kMutableHashTableV2;
}

bool FillsTable(Op op) {
  return op == ops::kInitializeTable || op == ops::kInitializeTableV2 || op == ops::kLookupTableImport ||
         op == ops::kLookupTableImportV2 || op == ops::kInitializeTableFromTextFile ||
         op == ops::kInitializeTableFromTextFileV2;
}

std::string TableName(const Node& node) {
  const std::string shared_name = StringAttr(node, "shared_name").value_or("");
  return absl::StrCat(StringAttr(node, "container").value_or(""), "/",
                      shared_name.empty() ? std::string(node.name()) : shared_name);
}

}  // namespace

std::vector<std::string> InitializersOf(const Graph& graph, const Program& program) {
  if (!kHoldsTables) return {};
  absl::flat_hash_set<std::string> tables;
  absl::flat_hash_set<const Node*> running;
  for (const ProgramNode& node : program.nodes) {
    if (IsTable(node.node->op())) tables.insert(TableName(*node.node));
    if (FillsTable(node.node->op())) running.insert(node.node);
  }
  std::vector<std::string> names;
  if (tables.empty()) return names;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!FillsTable(node->op()) || running.contains(node) || node->num_data_inputs() == 0) continue;
    const Node* table = node->input(0).node;
    if (IsTable(table->op()) && tables.contains(TableName(*table))) names.emplace_back(node->name());
  }
  return names;
}

}  // namespace permafrost
