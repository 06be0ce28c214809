// Entries of lookup tables, as defined by the initialiser of a model.
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
  // Returns the content of the asset file whose path is the value of the named node.
  using AssetReader = std::function<absl::StatusOr<std::string>(absl::string_view node)>;

  // Returns the entries that the node `initializer` and the functions that it calls put into the tables of the graph.
  // Without an initialiser, all nodes that fill tables count. Tables whose entries are not constant or read from a file
  // are omitted. Returns the errors of `read_asset`, and InvalidArgument for a file without the entries that the node
  // describes. Errors name the node.
  static absl::StatusOr<TableContents> Of(const Graph& graph, absl::string_view initializer,
                                          const AssetReader& read_asset);

  // Adds the entries as constants, and for each table a node that fills it before every reader runs. The graph needs no
  // other initialisation, and the entries are kept as long as a reader is kept.
  absl::Status AddTo(Graph* graph) const;

  bool Has(absl::string_view table) const { return entries_.find(std::string(table)) != entries_.end(); }

 private:
  struct Entries {
    Tensor keys, values;
  };
  absl::btree_map<std::string, Entries> entries_;  // By the names of the tables' nodes.
};

// Returns true for an op that creates a named table.
bool IsLookupTable(Op op);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_FREEZE_TABLE_CONTENTS_H_
