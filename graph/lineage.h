// Lineage: for each node of the current graph, the nodes of the loaded graph that it originates from.
//
//   graph->RecordLineage();  // Once, after loading. Without it nothing is recorded, at no cost.
//   ...
//   OriginScope scope(graph, {mul, convolution});  // In a rewrite: the matched nodes, the one that is replaced first.
//   ... AddNode, ReplaceUses, RemoveNode as usual
//   ...
//   graph->lineage()->OriginsOf(*node, limit);  // In the end.
//
// A node that is modified or renamed keeps its origins. Inside a scope:
//   - a new node originates from all matched nodes;
//   - the origins of a removed node are added to the node that replaced it in ReplaceUses(), or else to the first
//   matched node that still exists, or else to the new nodes.
// Outside of scopes a new node has no origins until ReplaceUses() makes it replace a node, and the origins of a removed
// node are lost. A pass that decides first and edits afterwards calls Graph::AddOrigins(). Every event costs O(1),
// every scope O(matched nodes); sets with common members share memory.
#ifndef PERMAFROST_GRAPH_LINEAGE_H_
#define PERMAFROST_GRAPH_LINEAGE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace permafrost {

class Lineage {
 public:
  struct Origins {
    std::vector<absl::string_view> names;  // In the order of the loaded graph. Kept alive by the graph.
    bool is_complete = true;               // False if there are more than the limit.
  };

  // Makes every node of `graph` its own origin.
  explicit Lineage(const Graph& graph);

  // Names of all nodes of the loaded graph, in order.
  const std::vector<absl::string_view>& originals() const { return originals_; }

  // Returns the name of the loaded node that `node` represents: `node` itself if it was loaded, or a removed node that
  // it replaced (ReplaceUses). If the first matched node of a scope was removed without replacement, the only new node
  // that is not a Const counts as its replacement. Returns an empty string for an additional node.
  absl::string_view StandsFor(const Node& node) const;

  // Returns at most `limit` origins of `node`, in O(limit).
  Origins OriginsOf(const Node& node, size_t limit) const;

 private:
  friend class Graph;
  friend class OriginScope;
  // A set is an original, or the union of two sets.
  using Set = uint32_t;
  static constexpr Set kNone = UINT32_MAX;      // The empty set, or no original.
  static constexpr Set kGone = UINT32_MAX - 1;  // Of a removed node.

  Lineage() = default;
  // Copies the lineage for a clone of the graph, in which the node of id i was copied from the node of id `source[i]`.
  std::unique_ptr<Lineage> CloneFor(const std::vector<uint32_t>& source) const;

  Set SetOf(const Node& node) const { return node.id() < set_.size() ? set_[node.id()] : kNone; }
  bool IsGone(const Node& node) const { return SetOf(node) == kGone; }
  Set Union(Set a, Set b);
  void Add(const Node& node, Set set);
  void TakePlace(const Node& node, const Node& from);

  void OnAdded(const Node& node);
  void OnRemoved(const Node& node);
  void OnReplaced(const Node& from, const Node& to);

  std::vector<absl::string_view> originals_;
  std::vector<Set> set_;                     // By node id.
  std::vector<Set> place_;                   // By node id: the original that the node represents.
  std::vector<uint32_t> loaded_;             // By original: the id of its node.
  std::vector<std::pair<Set, Set>> unions_;  // Of the sets originals_.size() and up.
  class OriginScope* scope_ = nullptr;       // The innermost.
};

// Declares which nodes the edits of one rewrite concern, until it is destroyed. Scopes nest; the innermost applies. Has
// no effect if the graph records no lineage.
class OriginScope {
 public:
  // REQUIRES: `graph` outlives the scope; at least one matched node.
  OriginScope(Graph* graph, absl::Span<const Node* const> matched);
  OriginScope(Graph* graph, std::initializer_list<const Node*> matched)
      : OriginScope(graph, absl::MakeConstSpan(matched.begin(), matched.size())) {}
  ~OriginScope() {
    if (lineage_ != nullptr) Close();
  }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  friend class Lineage;
  struct Removed {
    const Node* node;
    Lineage::Set set;
  };
  struct Replaced {
    const Node* from;
    const Node* to;
  };

  void Close();

  Lineage* lineage_;  // Null if no lineage is recorded.
  OriginScope* outer_ = nullptr;
  absl::InlinedVector<const Node*, 4> matched_;
  Lineage::Set matched_set_ = Lineage::kNone;  // Origins of all matched nodes.
  std::vector<const Node*> added_;
  std::vector<Removed> removed_;
  std::vector<Replaced> replaced_;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_LINEAGE_H_
