// Pairs nodes by name or by lineage.
#include "tools/difference/node_pairing.h"

namespace permafrost {

NodePairing::NodePairing(const Graph& actual, const Graph& expected, const OriginsByName* origins)
    : expected_graph_(expected),
      origins_(origins),
      actual_(expected.id_limit(), nullptr),
      expected_(actual.id_limit(), nullptr),
      heir_(expected.id_limit(), nullptr) {
  for (const Node* node = actual.first(); node != nullptr; node = node->next()) {
    absl::string_view name = node->name();
    if (origins != nullptr) {
      if (const auto found = origins->find(name); found != origins->end()) name = found->second.stands_for;
    }
    const Node* partner = expected.Find(name);
    if (partner == nullptr || actual_[partner->id()] != nullptr) continue;
    actual_[partner->id()] = heir_[partner->id()] = node;
    expected_[node->id()] = partner;
  }
  if (origins == nullptr) return;
  for (const Node* node = actual.first(); node != nullptr; node = node->next()) {
    for (const Node* origin : OriginsOf(*node)) {
      if (heir_[origin->id()] == nullptr) heir_[origin->id()] = node;
    }
  }
}

std::vector<const Node*> NodePairing::OriginsOf(const Node& actual) const {
  std::vector<const Node*> nodes;
  const auto add = [&](absl::string_view name) {
    if (const Node* node = expected_graph_.Find(name); node != nullptr) nodes.push_back(node);
  };
  if (origins_ != nullptr) {
    if (const auto found = origins_->find(actual.name()); found != origins_->end()) {
      for (const std::string& name : found->second.names) add(name);
      return nodes;
    }
  }
  add(actual.name());
  return nodes;
}

}  // namespace permafrost
