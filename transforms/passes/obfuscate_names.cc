// Replaces the names of nodes by short ids.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "graph/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

// `number` in base 62, the most significant digit first.
std::string ShortName(uint64_t number) {
  constexpr absl::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name;
  do {
    name.insert(name.begin(), kDigits[number % kDigits.size()]);
    number /= kDigits.size();
  } while (number > 0);
  return name;
}

absl::StatusOr<int64_t> Obfuscate(Graph* graph, const NoParams&, PassContext* context) {
  // Names that are part of the interface, including that of a declared input that the graph lacks: no other node may
  // become what the caller feeds.
  absl::flat_hash_set<std::string> kept;
  for (const auto* endpoints : {&graph->inputs(), &graph->outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      kept.insert(endpoint.node != nullptr ? std::string(endpoint.node->name())
                                           : endpoint.text.substr(0, endpoint.text.find(':')));
    }
  }
  std::vector<std::pair<Node*, std::string>> names;
  absl::flat_hash_map<std::string, std::string> new_names;
  uint64_t counter = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    std::string name(node->name());
    if (!graph->IsEndpoint(node)) {
      do {
        name = ShortName(counter++);
      } while (kept.contains(name));
      if (name != node->name()) names.emplace_back(node, name);
    }
    new_names.emplace(node->name(), std::move(name));
  }
  // What an entry names no longer, or never did, would give a name away, or by chance mean another node.
  const int64_t relocated = RelocateColocations(graph, [&](absl::string_view name) -> absl::string_view {
    const auto found = new_names.find(name);
    return found == new_names.end() ? absl::string_view() : absl::string_view(found->second);
  });
  PF_RETURN_IF_ERROR(graph->RenameAll(names));
  if (!names.empty()) context->Note(absl::StrCat("renamed ", names.size(), " of ", graph->num_nodes(), " nodes"));
  return static_cast<int64_t>(names.size()) + relocated;
}

}  // namespace

// Replaces the names of nodes by short ids: the place in the file in base 62 (0-9, a-z, A-Z). Inputs and `_class`
// follow; entries of `_class` that name no node are dropped.
//
//   conv = Conv2D(image, weights)   =>   1 = Conv2D(image, 0)
//
// Left alone are declared inputs and outputs, whose names no id repeats, and the names of functions, of variables in
// `shared_name` and of loops in `frame_name`. This makes names short and dull; it does not encrypt anything.
DEFINE_PASS(obfuscate_names) {
  return Pass<NoParams>("Replaces the names of nodes, save those of inputs and outputs, by short ids.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Obfuscate);
}

}  // namespace permafrost
