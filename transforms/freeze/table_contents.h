// Entries of lookup tables, as the initialiser of a model gives them.
#ifndef PERMAFROST_TRANSFORMS_FREEZE_TABLE_CONTENTS_H_
#define PERMAFROST_TRANSFORMS_FREEZE_TABLE_CONTENTS_H_

#include <functional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

class TableContents {
 public:
  // Returns the content of the asset file whose path the named node stands for.
  using AssetReader = std::function<absl::StatusOr<std::string>(absl::string_view node)>;

  // The entries that the node `initializer` and what it calls put into the tables of the graph. Without such a node,
  // all nodes that fill tables count. Tables whose entries are computed, or come from elsewhere, are left out. Errors
  // name the node: those of `read_asset`; InvalidArgument for a file that does not have the entries that the node
  // describes.
  static absl::StatusOr<TableContents> Of(const Graph& graph, absl::string_view initializer,
                                          const AssetReader& read_asset);

  // Adds the entries as constants, and for each table a node that fills it, which runs before every reader of the
  // table: the graph needs no other initialisation, and what keeps a reader keeps the entries.
  absl::Status AddTo(Graph* graph) const;

  bool Has(absl::string_view table) const { return entries_.find(std::string(table)) != entries_.end(); }

 private:
  struct Entries {
    Tensor keys, values;
  };
  absl::btree_map<std::string, Entries> entries_;  // By the names of the tables' nodes.
};

// True for an op that makes a table with a name.
bool IsLookupTable(Op op);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_TABLE_CONTENTS_H_
