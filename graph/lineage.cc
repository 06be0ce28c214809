// Implements Lineage and OriginScope.
#include "graph/lineage.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace permafrost {

Lineage::Lineage(const Graph& graph) : set_(graph.id_limit(), kGone), place_(graph.id_limit(), kNone) {
  originals_.reserve(graph.num_nodes());
  loaded_.reserve(graph.num_nodes());
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    set_[node->id()] = place_[node->id()] = static_cast<Set>(originals_.size());
    loaded_.push_back(node->id());
    originals_.push_back(node->name());
  }
}

std::unique_ptr<Lineage> Lineage::CloneFor(const std::vector<uint32_t>& source) const {
  std::unique_ptr<Lineage> copy(new Lineage());
  copy->originals_ = originals_;
  copy->unions_ = unions_;
  copy->loaded_.assign(originals_.size(), kNone);
  copy->set_.reserve(source.size());
  copy->place_.reserve(source.size());
  for (const uint32_t id : source) {
    const Set place = id < place_.size() ? place_[id] : kNone;
    if (place != kNone && loaded_[place] == id) copy->loaded_[place] = static_cast<uint32_t>(copy->set_.size());
    copy->set_.push_back(id < set_.size() ? set_[id] : kNone);
    copy->place_.push_back(place);
  }
  return copy;
}

Lineage::Set Lineage::Union(Set a, Set b) {
  if (a == kNone || a == kGone || a == b) return b;
  if (b == kNone || b == kGone) return a;
  const size_t made = originals_.size() + unions_.size();
  if (made >= kGone) return a;  // After 2^32 events nothing more is recorded.
  unions_.emplace_back(a, b);
  return static_cast<Set>(made);
}

void Lineage::TakePlace(const Node& node, const Node& from) {
  if (node.id() >= place_.size()) place_.resize(node.id() + 1, kNone);
  if (place_[node.id()] == kNone && from.id() < place_.size()) place_[node.id()] = place_[from.id()];
}

absl::string_view Lineage::StandsFor(const Node& node) const {
  const Set place = node.id() < place_.size() ? place_[node.id()] : kNone;
  if (place == kNone) return {};
  // A node that was replaced but not removed continues to represent its original.
  const uint32_t loaded = loaded_[place];
  const bool is_there = loaded != kNone && loaded != node.id() && set_[loaded] != kGone;
  return is_there ? absl::string_view() : originals_[place];
}

void Lineage::Add(const Node& node, Set set) {
  if (node.id() >= set_.size()) set_.resize(node.id() + 1, kNone);
  if (set_[node.id()] != kGone) set_[node.id()] = Union(set_[node.id()], set);
}

Lineage::Origins Lineage::OriginsOf(const Node& node, size_t limit) const {
  Origins origins;
  std::vector<Set> pending = {SetOf(node)};
  std::vector<Set> found;
  absl::flat_hash_set<Set> seen;
  while (!pending.empty()) {
    const Set set = pending.back();
    pending.pop_back();
    if (set == kNone || set == kGone || !seen.insert(set).second) continue;
    const bool is_original = set < originals_.size();
    // A set of n origins takes n - 1 unions, or more if the same origins were added several times.
    if ((is_original && found.size() >= limit) || seen.size() / 8 > limit) {
      origins.is_complete = false;
      break;
    }
    if (is_original) {
      found.push_back(set);
      continue;
    }
    const auto& [a, b] = unions_[set - originals_.size()];
    pending.push_back(b);
    pending.push_back(a);
  }
  std::sort(found.begin(), found.end());
  for (const Set set : found) origins.names.push_back(originals_[set]);
  return origins;
}

void Lineage::OnAdded(const Node& node) {
  if (node.id() >= set_.size()) set_.resize(node.id() + 1, kNone);
  if (scope_ == nullptr) return;
  set_[node.id()] = scope_->matched_set_;
  scope_->added_.push_back(&node);
}

void Lineage::OnRemoved(const Node& node) {
  if (scope_ != nullptr) scope_->removed_.push_back({&node, SetOf(node)});
  if (node.id() < set_.size()) set_[node.id()] = kGone;
}

void Lineage::OnReplaced(const Node& from, const Node& to) {
  TakePlace(to, from);
  if (scope_ != nullptr) {
    scope_->replaced_.push_back({&from, &to});
  } else if (SetOf(to) == kNone) {
    Add(to, SetOf(from));
  }
}

OriginScope::OriginScope(Graph* graph, absl::Span<const Node* const> matched) : lineage_(graph->lineage()) {
  if (lineage_ == nullptr) return;
  for (const Node* node : matched) {
    if (node == nullptr) continue;
    matched_.push_back(node);
    matched_set_ = lineage_->Union(matched_set_, lineage_->SetOf(*node));
  }
  outer_ = lineage_->scope_;
  lineage_->scope_ = this;
}

void OriginScope::Close() {
  lineage_->scope_ = outer_;
  if (removed_.empty()) return;
  if (!matched_.empty() && lineage_->IsGone(*matched_[0])) {
    const auto is_computed = [](const Node* node) { return node->op() != ops::kConst; };
    if (std::count_if(added_.begin(), added_.end(), is_computed) == 1) {
      lineage_->TakePlace(**std::find_if(added_.begin(), added_.end(), is_computed), *matched_[0]);
    }
  }
  absl::flat_hash_map<const Node*, const Node*> successor;
  for (const Replaced& replaced : replaced_) successor[replaced.from] = replaced.to;
  const Node* head = nullptr;
  for (const Node* node : matched_) {
    if (head == nullptr && !lineage_->IsGone(*node)) head = node;
  }
  const absl::flat_hash_set<const Node*> matched(matched_.begin(), matched_.end());
  const absl::flat_hash_set<const Node*> added(added_.begin(), added_.end());
  Lineage::Set unplaced = Lineage::kNone;
  for (const Removed& removed : removed_) {
    const Node* to = removed.node;
    std::vector<const Node*> path;  // The replacement may have been replaced in turn; a cycle ends the search.
    while (lineage_->IsGone(*to) && path.size() <= replaced_.size()) {
      const auto found = successor.find(to);
      if (found == successor.end()) break;
      path.push_back(to);
      to = found->second;
    }
    for (const Node* node : path) successor[node] = to;
    if (lineage_->IsGone(*to)) to = head;
    const bool is_known = matched.contains(removed.node);  // New nodes originate from all matched nodes already.
    if (to == nullptr) {
      if (!is_known) unplaced = lineage_->Union(unplaced, removed.set);
    } else if (!is_known || !added.contains(to)) {
      lineage_->Add(*to, removed.set);
    }
  }
  if (unplaced == Lineage::kNone) return;
  for (const Node* node : added_) lineage_->Add(*node, unplaced);
}

}  // namespace permafrost
