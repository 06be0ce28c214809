// Implements the steps of freezing.
#include "transforms/freeze/freeze.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/analysis/order.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "transforms/freeze/assignments.h"
#include "transforms/freeze/initial_values.h"
#include "transforms/freeze/table_contents.h"
#include "transforms/freeze/value_flow.h"
#include "transforms/pass.h"
#include "transforms/rewrites/call_inlining.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

bool IsVariable(const Node& node) {
  return node.op() == ops::kVariable || node.op() == ops::kVariableV2 || node.op() == ops::kVarHandleOp;
}

absl::Status KeepWhatOutputsNeed(Graph* graph) {
  std::vector<Node*> roots;
  for (const Endpoint& output : graph->outputs()) roots.push_back(output.node);
  for (const Endpoint& input : graph->inputs()) {
    if (input.node != nullptr) roots.push_back(input.node);
  }
  std::vector<bool> remove = ReachedBackwards(*graph, roots, {});
  remove.flip();
  PF_RETURN_IF_ERROR(graph->RemoveNodes(remove));
  DropDanglingColocations(graph);
  return absl::OkStatus();
}

// Selects the variables that may become constants.
class Selection {
 public:
  static absl::StatusOr<Selection> Of(const Graph& graph, const FreezeOptions& options) {
    Selection selection;
    selection.only_.insert(options.only_variables.begin(), options.only_variables.end());
    selection.except_.insert(options.except_variables.begin(), options.except_variables.end());
    std::vector<absl::string_view> names;
    absl::flat_hash_set<absl::string_view> known;
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (IsVariable(*node) && known.insert(node->name()).second) names.push_back(node->name());
    }
    for (const std::vector<std::string>* list : {&options.only_variables, &options.except_variables}) {
      for (const std::string& name : *list) {
        if (known.contains(name)) continue;
        return absl::NotFoundError(absl::StrCat("the graph has no variable '", name, "'", DidYouMean(name, names)));
      }
    }
    return selection;
  }

  bool Takes(const Node& variable) const {
    return (only_.empty() || only_.contains(variable.name())) && !except_.contains(variable.name());
  }

 private:
  absl::flat_hash_set<std::string> only_, except_;
};

// Reads each value once and records the values read.
class Reader {
 public:
  Reader(const VariableValues& values, const InitialValues& initial, const Selection& selection, FreezeReport* report)
      : values_(values), initial_(initial), selection_(selection), report_(report) {}

  absl::StatusOr<const Tensor*> Lookup(const Node& variable) {
    if (!selection_.Takes(variable)) {
      if (std::find(kept_.begin(), kept_.end(), variable.name()) == kept_.end()) kept_.emplace_back(variable.name());
      return nullptr;
    }
    const std::string name(variable.name());
    const auto [entry, is_new] = tensors_.try_emplace(name);
    if (!is_new) return entry->second.get();
    FrozenVariable frozen;
    if (const Tensor* initial = initial_.Find(name); initial != nullptr) {
      entry->second = std::make_unique<Tensor>(*initial);
    } else {
      PF_ASSIGN_OR_RETURN(VariableValues::Value value, values_.Of(variable));
      frozen.key = std::move(value.key);
      frozen.is_average = value.is_average;
      entry->second = std::make_unique<Tensor>(std::move(value.tensor));
    }
    frozen.node = name;
    frozen.dtype = entry->second->dtype();
    frozen.shape = entry->second->shape();
    frozen.bytes = entry->second->bytes().size();
    report_->variables.push_back(std::move(frozen));
    return entry->second.get();
  }

  const std::vector<std::string>& kept() const { return kept_; }

 private:
  const VariableValues& values_;
  const InitialValues& initial_;
  const Selection& selection_;
  FreezeReport* report_;
  absl::flat_hash_map<std::string, std::unique_ptr<Tensor>> tensors_;
  std::vector<std::string> kept_;
};

absl::Status InlineCalls(Graph* graph) {
  PF_ASSIGN_OR_RETURN(const FunctionLibrary library, FunctionLibrary::Of(*graph));
  if (library.empty()) return absl::OkStatus();
  PassContext context;
  CallInlining inlining(library, {}, &context);
  PF_RETURN_IF_ERROR(inlining.InlineCalls(graph).status());
  return KeepWhatOutputsNeed(graph);
}

// Removes functions that are no longer called.
absl::Status DropFunctions(Graph* graph) {
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  if (library.empty()) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const auto needed, library.Reachable(library.CalledBy(*graph)));
  library.Retain(needed);
  library.Store(graph);
  return absl::OkStatus();
}

// Finds the variables that the graph changes. Repeats until no more are found, since a handle may be that of several.
absl::Status FindStateful(const VariableLookup& lookup, const FunctionLibrary& functions, Graph* graph,
                          absl::btree_set<std::string>* stateful) {
  while (true) {
    PF_ASSIGN_OR_RETURN(absl::btree_set<std::string> more, ValueFlow(lookup, functions).ChangedVariables(graph));
    // A variable of a function body has no node here that could be initialised; freezing it reports the reason.
    for (auto name = more.begin(); name != more.end();)
      name = graph->Find(*name) == nullptr ? more.erase(name) : ++name;
    const size_t before = stateful->size();
    stateful->merge(more);
    if (stateful->size() == before) return absl::OkStatus();
  }
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMostListed = 5;
  const size_t shown = std::min(names.size(), kMostListed);
  const std::string list = absl::StrJoin(names.begin(), names.begin() + static_cast<int64_t>(shown), "', '");
  const std::string more = names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "";
  return absl::StrCat("'", list, "'", more);
}

// Notes the tables whose entries are unknown.
void NoteEmptyTables(const Graph& graph, const TableContents& contents, FreezeReport* report) {
  std::vector<std::string> tables;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (IsLookupTable(node->op()) && !contents.Has(node->name())) tables.emplace_back(node->name());
  }
  if (tables.empty()) return;
  report->notes.push_back(
      absl::StrCat("the entries of tables are not known: ", Listed(tables), tables.size() == 1 ? " is" : " are",
                   " empty until the model's initialiser runs; to avoid the tables, choose inputs after the look-up"));
}

// Gives the variables that stay their saved values as initial ones.
absl::Status InitializeVariables(const absl::btree_set<std::string>& stateful, Reader* reader, Graph* graph,
                                 FreezeReport* report) {
  for (const std::string& name : stateful) {
    Node* variable = graph->Find(name);
    if (variable == nullptr || !IsVariable(*variable)) continue;
    PF_ASSIGN_OR_RETURN(const Tensor* value, reader->Lookup(*variable));
    if (value == nullptr) continue;  // The caller excludes the variable.
    PF_RETURN_IF_ERROR(AddInitializer(graph, variable, *value));
    report->stateful.push_back(name);
  }
  const auto is_kept = [&](const FrozenVariable& variable) { return stateful.contains(variable.node); };
  report->variables.erase(std::remove_if(report->variables.begin(), report->variables.end(), is_kept),
                          report->variables.end());
  if (report->stateful.empty()) return absl::OkStatus();
  report->notes.push_back(
      absl::StrCat("kept as variables, since the outputs depend on assignments to them: ", Listed(report->stateful),
                   "; a session keeps their values from one run to the next, --drop_assignments makes them constants"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FreezeReport> Freeze(const VariableSource& source, const FreezeOptions& options, Graph* graph) {
  if (graph->outputs().empty()) {
    return absl::FailedPreconditionError("no outputs are declared, so nothing would be left of the graph");
  }
  FreezeReport report;
  report.nodes_before = graph->num_nodes();
  PF_ASSIGN_OR_RETURN(const Selection selection, Selection::Of(*graph, options));
  PF_ASSIGN_OR_RETURN(const InitialValues initial, InitialValues::Of(*graph, options.initializers, options.evaluator));
  PF_ASSIGN_OR_RETURN(const TableContents tables,
                      TableContents::Of(*graph, options.table_initializer, options.read_asset));
  // Parts of variables may not lead to the outputs, but they define where other parts begin.
  const std::unique_ptr<Graph> whole = graph->Clone();
  PF_RETURN_IF_ERROR(KeepWhatOutputsNeed(graph));
  if (options.inline_calls) PF_RETURN_IF_ERROR(InlineCalls(graph));

  DropUnreadAssignments(graph);
  PF_RETURN_IF_ERROR(KeepWhatOutputsNeed(graph));
  PF_RETURN_IF_ERROR(DropFunctions(graph));

  const VariableValues values(*whole, source, options.naming);
  Reader reader(values, initial, selection, &report);
  absl::btree_set<std::string> stateful;
  const VariableLookup lookup = [&](const Node& variable) -> absl::StatusOr<const Tensor*> {
    if (stateful.contains(variable.name())) return nullptr;
    return reader.Lookup(variable);
  };
  PF_ASSIGN_OR_RETURN(const FunctionLibrary functions, FunctionLibrary::Of(*graph));
  if (!options.drop_assignments) PF_RETURN_IF_ERROR(FindStateful(lookup, functions, graph, &stateful));
  ValueFlow flow(lookup, functions, options.drop_assignments);
  PF_RETURN_IF_ERROR(flow.Freeze(graph));
  PF_RETURN_IF_ERROR(KeepWhatOutputsNeed(graph));
  PF_RETURN_IF_ERROR(DropFunctions(graph));
  PF_RETURN_IF_ERROR(InitializeVariables(stateful, &reader, graph, &report));
  if (options.clear_devices) {
    for (Node* node = graph->first(); node != nullptr; node = node->next()) node->set_device("");
  }
  if (!reader.kept().empty()) {
    report.notes.push_back(absl::StrCat("left as variables: ", Listed(reader.kept())));
  }
  PF_RETURN_IF_ERROR(tables.AddTo(graph));
  NoteEmptyTables(*graph, tables, &report);
  return report;
}

}  // namespace permafrost
