// Where nodes come from: which nodes of the graph as it was loaded each node of the graph as it is now stands for.
//
//   graph->RecordLineage();  // Once, after loading; without it nothing is recorded, or paid for.
//   ...
//   OriginScope scope(graph, {mul, convolution});  // In a rewrite: what matched; the node that keeps its place first.
//   ... AddNode, ReplaceUses, RemoveNode as usual
//   ...
//   graph->lineage()->OriginsOf(*node, limit);  // In the end.
//
// A node that is only changed or renamed keeps its origins by itself. Inside a scope:
//   - a new node comes from all that was matched;
//   - what is removed goes on in the node that ReplaceUses() put in its place, or else in the first matched node that
//     is left, or else in the new nodes.
// Outside of scopes a new node has no origins until ReplaceUses() puts it in the place of a node, and what is removed
// is gone. A pass that decides first and edits afterwards calls Graph::AddOrigins(). Every event costs O(1), every
// scope what it matched; sets that share members share memory.
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
    std::vector<absl::string_view> names;  // In the order of the graph as it was loaded. Kept alive by the graph.
    bool is_complete = true;               // False when there are more than the limit.
  };

  // Every node of `graph` comes from itself.
  explicit Lineage(const Graph& graph);

  // All names of the graph as it was loaded, in its order.
  const std::vector<absl::string_view>& originals() const { return originals_; }

  // The loaded node whose place `node` has: the node itself if it was loaded, or what it replaced (ReplaceUses) and
  // what is gone. In a scope whose first matched node is gone and was not replaced, the only new node that is no Const
  // counts as its replacement. Empty for a node that is there in addition.
  absl::string_view StandsFor(const Node& node) const;

  // At most `limit` origins of `node`, in O(limit).
  Origins OriginsOf(const Node& node, size_t limit) const;

 private:
  friend class Graph;
  friend class OriginScope;
  // A set is an original, or the union of two sets.
  using Set = uint32_t;
  static constexpr Set kNone = UINT32_MAX;      // The empty set, or no original.
  static constexpr Set kGone = UINT32_MAX - 1;  // Of a node that was removed.

  Lineage() = default;
  // The same for a clone whose node of id i was made from the node of id `source[i]`.
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
  std::vector<Set> place_;                   // By node id: the original whose place it has.
  std::vector<uint32_t> loaded_;             // By original: the id of its node.
  std::vector<std::pair<Set, Set>> unions_;  // Of the sets originals_.size() and up.
  class OriginScope* scope_ = nullptr;       // The innermost.
};

// Says what the edits of one rewrite are about, until it is destroyed. Scopes nest; the innermost counts. Nothing when
// the graph records no lineage.
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

  Lineage* lineage_;  // Null when there is nothing to do.
  OriginScope* outer_ = nullptr;
  absl::InlinedVector<const Node*, 4> matched_;
  Lineage::Set matched_set_ = Lineage::kNone;  // All that was matched.
  std::vector<const Node*> added_;
  std::vector<Removed> removed_;
  std::vector<Replaced> replaced_;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_LINEAGE_H_
