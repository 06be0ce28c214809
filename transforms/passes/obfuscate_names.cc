// Replaces the names of nodes with short ids.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

// Returns `number` in base 62, the most significant digit first.
std::string ShortName(uint64_t number) {
  constexpr absl::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name;
  do {
    name.insert(name.begin(), kDigits[number % kDigits.size()]);
    number /= kDigits.size();
  } while (number > 0);
  return name;
}

struct Params {
  bool obfuscate_attributes = false;
};

// Attributes whose strings name shared objects or are informative only. Equal strings must stay equal; their content is
// irrelevant.
constexpr absl::string_view kNameAttrs[] = {"container",  "frame_name",        "shared_name",
                                            "stack_name", "tensor_array_name", "var_name"};

// Replaces the strings of kNameAttrs: the name of a node by its new name, any other string by an unused id. Empty
// strings and names known to the caller are kept. Returns the number of changed nodes. Counts as a single rewrite,
// since nodes that share a string must continue to share it.
int64_t ObfuscateAttributes(Graph* graph, absl::flat_hash_map<std::string, std::string> new_names, uint64_t next_id,
                            const absl::flat_hash_set<std::string>& kept, PassContext* context) {
  int64_t changed_nodes = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    bool is_changed = false;
    for (const absl::string_view key : kNameAttrs) {
      const AttrValue* attr = node->FindAttr(key);
      if (attr == nullptr) continue;
      const absl::StatusOr<absl::string_view> text = attr->AsString();
      if (!text.ok() || text->empty() || kept.contains(*text)) continue;
      const auto [name, is_new] = new_names.try_emplace(*text);
      if (is_new) {
        do {
          name->second = ShortName(next_id++);
        } while (kept.contains(name->second));
      }
      if (name->second == *text) continue;
      const bool is_first = changed_nodes == 0 && !is_changed;
      if (is_first && !context->AllowRewrite(*node)) return 0;
      node->SetAttr(key, AttrValue::String(name->second));
      is_changed = true;
    }
    if (is_changed) ++changed_nodes;
  }
  return changed_nodes;
}

using NewNames = std::vector<std::pair<Node*, std::string>>;

// Removes from `names` the nodes whose new name is in use by a node that keeps its name: one of `staying`, or a node
// removed in this way.
void LeaveOutTaken(std::vector<const Node*> staying, NewNames* names) {
  absl::flat_hash_map<absl::string_view, size_t> takers;
  for (size_t i = 0; i < names->size(); ++i) takers.emplace((*names)[i].second, i);
  std::vector<bool> is_out(names->size(), false);
  while (!staying.empty()) {
    const auto taker = takers.find(staying.back()->name());
    staying.pop_back();
    if (taker == takers.end() || is_out[taker->second]) continue;
    is_out[taker->second] = true;
    staying.push_back((*names)[taker->second].first);
  }
  NewNames left;
  for (size_t i = 0; i < names->size(); ++i) {
    if (!is_out[i]) left.push_back(std::move((*names)[i]));
  }
  *names = std::move(left);
}

absl::StatusOr<int64_t> Obfuscate(Graph* graph, const Params& params, PassContext* context) {
  // Names of the interface, including declared inputs that the graph lacks: no other node may get a name that the
  // caller feeds.
  absl::flat_hash_set<std::string> kept;
  for (const auto* endpoints : {&graph->inputs(), &graph->outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      kept.insert(endpoint.node != nullptr ? std::string(endpoint.node->name())
                                           : endpoint.text.substr(0, endpoint.text.find(':')));
    }
  }
  NewNames names;
  std::vector<const Node*> staying;
  uint64_t counter = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (graph->IsEndpoint(node)) continue;
    std::string name;
    do {
      name = ShortName(counter++);
    } while (kept.contains(name));
    if (name == node->name()) continue;
    if (context->AllowRewrite(*node)) {
      names.emplace_back(node, std::move(name));
    } else {
      staying.push_back(node);
    }
  }
  const bool is_complete = staying.empty() && context->rewrite_limit > 0;
  if (!staying.empty()) LeaveOutTaken(std::move(staying), &names);
  absl::flat_hash_map<std::string, std::string> new_names;
  new_names.reserve(graph->num_nodes());
  for (const auto& [node, name] : names) new_names.emplace(node->name(), name);
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    new_names.try_emplace(node->name(), node->name());
  }
  // An entry that names no node would reveal a name, or by chance match another node.
  const int64_t relocated = RelocateColocations(graph, [&](absl::string_view name) -> absl::string_view {
    const auto found = new_names.find(name);
    if (found != new_names.end()) return found->second;
    return is_complete ? absl::string_view() : name;
  });
  PF_RETURN_IF_ERROR(graph->RenameAll(names));
  if (!names.empty()) context->Note(absl::StrCat("renamed ", names.size(), " of ", graph->num_nodes(), " nodes"));
  int64_t num_renamed_in_attributes = 0;
  if (params.obfuscate_attributes) {
    num_renamed_in_attributes = ObfuscateAttributes(graph, std::move(new_names), counter, kept, context);
    context->Note(absl::StrCat("replaced names in attributes of ", num_renamed_in_attributes, " nodes"));
  }
  return static_cast<int64_t>(names.size()) + relocated + num_renamed_in_attributes;
}

}  // namespace

// Replaces the names of nodes by short ids: the position in the file in base 62 (0-9, a-z, A-Z). Inputs and `_class`
// are updated; entries of `_class` that name no node are removed.
//
//   conv = Conv2D(image, weights)   =>   1 = Conv2D(image, 0)
//
// Leaves unchanged declared inputs and outputs (ids never collide with their names), the names of functions and of the
// nodes in them, and, unless obfuscate_attributes is true, the names of variables, tables, loops and other resources in
// `shared_name`, `container`, `frame_name`, `stack_name`, `tensor_array_name` and `var_name`. Names become short and
// meaningless; nothing is encrypted.
DEFINE_PASS(obfuscate_names) {
  return Pass<Params>("Replaces the names of all nodes except inputs and outputs by short ids.")
      .Why(
          "Names reveal how a model is built and take space; without them the file is smaller and harder to interpret.")
      .Param("obfuscate_attributes", &Params::obfuscate_attributes,
             "Also replace names in attributes; equal names get equal ids.")
      .Alias("obsfucate_names")
      .Numerics(Exact())
      .Idempotent()
      .Run(Obfuscate);
}

}  // namespace permafrost
