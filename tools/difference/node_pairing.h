// Pairs the nodes of two graphs: by name, or exactly, by a recorded lineage.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_NODE_PAIRING_H_
#define PERMAFROST_TOOLS_DIFFERENCE_NODE_PAIRING_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "tools/difference/lineage_file.h"

namespace permafrost {

// Pairs the nodes of `actual`, which was made from `expected`, with those of `expected`. O(nodes + origins).
class NodePairing {
 public:
  // `origins` is the lineage of `actual` and may be null: then nodes of the same name are pairs. With a lineage a node
  // is paired with the node that it replaces. The graphs must outlive this object.
  NodePairing(const Graph& actual, const Graph& expected, const OriginsByName* origins);

  // Returns the actual node paired with `expected`; null if there is none.
  const Node* ActualOf(const Node& expected) const { return Look(actual_, expected); }
  const Node* ExpectedOf(const Node& actual) const { return Look(expected_, actual); }
  // Returns the node that continues an expected node: the one paired with it, or else the first that was made from it.
  // Null for a removed node.
  const Node* HeirOf(const Node& expected) const { return Look(heir_, expected); }
  // Returns the origins of an actual node, in the order of the file.
  std::vector<const Node*> OriginsOf(const Node& actual) const;

 private:
  using Partners = std::vector<const Node*>;  // By node id.
  static const Node* Look(const Partners& partners, const Node& node) { return partners[node.id()]; }

  const Graph& expected_graph_;
  const OriginsByName* origins_;
  Partners actual_, expected_, heir_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_NODE_PAIRING_H_
