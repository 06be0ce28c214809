// Maintains the colocation attribute `_class`. Its entries "loc:@name" name nodes, and TensorFlow does not load a graph
// in which such a node is missing.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

inline constexpr absl::string_view kColocationAttr = "_class";

// Maps the node name of an entry to a new name: `name` itself keeps the entry, an empty string drops it.
using Relocate = absl::FunctionRef<absl::string_view(absl::string_view name)>;

// Applies `relocate` to every entry of every node. Drops duplicate entries, and attributes without remaining entries.
// Attributes that are not a list of strings and entries that do not begin with "loc:@" are unchanged. Returns the
// number of changed nodes. O(attributes).
int64_t RelocateColocations(Graph* graph, Relocate relocate);

// Drops the entries that name no node of the graph. Returns the number of changed nodes.
int64_t DropDanglingColocations(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_
