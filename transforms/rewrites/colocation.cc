// Rewrites the entries of `_class`.
#include "transforms/rewrites/colocation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace permafrost {

int64_t RelocateColocations(Graph* graph, Relocate relocate) {
  constexpr absl::string_view kPrefix = "loc:@";
  int64_t changed_nodes = 0;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    const AttrValue* attr = node->FindAttr(kColocationAttr);
    if (attr == nullptr) continue;
    const absl::StatusOr<std::vector<std::string>> entries = attr->AsStringList();
    if (!entries.ok()) continue;
    std::vector<std::string> kept;
    bool changed = false;
    for (const std::string& entry : *entries) {
      absl::string_view name = entry;
      if (!absl::ConsumePrefix(&name, kPrefix)) {
        kept.push_back(entry);
        continue;
      }
      const absl::string_view target = relocate(name);
      changed |= target != name;
      if (target.empty()) continue;
      std::string relocated = absl::StrCat(kPrefix, target);
      if (!changed || std::find(kept.begin(), kept.end(), relocated) == kept.end())
        kept.push_back(std::move(relocated));
    }
    if (!changed) continue;
    ++changed_nodes;
    if (kept.empty()) {
      node->RemoveAttr(kColocationAttr);
    } else {
      node->SetAttr(kColocationAttr, AttrValue::StringList(kept));
    }
  }
  return changed_nodes;
}

int64_t DropDanglingColocations(Graph* graph) {
  return RelocateColocations(
      graph, [&](absl::string_view name) { return graph->Find(name) == nullptr ? absl::string_view() : name; });
}

}  // namespace permafrost
