// Upkeep of the attribute `_class`, which asks for a node to be placed with others: its entries "loc:@name" name nodes,
// and a graph in which they name none does not load.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

inline constexpr absl::string_view kColocationAttr = "_class";

// What an entry that names `name` is to name instead: `name` itself to leave it, an empty string to drop it.
using Relocate = absl::FunctionRef<absl::string_view(absl::string_view name)>;

// Applies `relocate` to every entry of every node; an entry that then stands there twice is dropped, and so is an
// attribute that is left without entries. An attribute that is not a list of strings, and entries that do not begin
// with "loc:@", are left alone. Returns how many nodes changed. O(attributes).
int64_t RelocateColocations(Graph* graph, Relocate relocate);

// Drops the entries that name no node of the graph. Returns how many nodes changed.
int64_t DropDanglingColocations(Graph* graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_COLOCATION_H_
