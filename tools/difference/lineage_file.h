// The file that transform_graph --lineage writes and compare_graphs --lineage reads. It maps each node of the output
// graph to the nodes of the input graph that it was made from. docs/formats/lineage.md describes it.
#ifndef PERMAFROST_TOOLS_DIFFERENCE_LINEAGE_FILE_H_
#define PERMAFROST_TOOLS_DIFFERENCE_LINEAGE_FILE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "io/file_system.h"

namespace permafrost {

// Facts in a lineage file besides the nodes.
struct LineageNote {
  std::string in_graph;
  std::string out_graph;
  std::vector<std::string> transforms;  // The transform calls, in order.
};

// Writes the file. REQUIRES: `graph` records its lineage. Errors of the file system.
absl::Status WriteLineageFile(const Graph& graph, const LineageNote& note, FileSystem& files, const std::string& path);

// The origins of one node of the output graph.
struct NodeOrigins {
  std::string stands_for;  // The node that this one replaces; empty for an additional node.
  std::vector<std::string> names;
  bool is_complete = true;
};

// Origins by node name. A node that is not listed comes from the node of its own name.
using OriginsByName = absl::flat_hash_map<std::string, NodeOrigins>;

// Reads a lineage file. InvalidArgument, with the file and the position, if the content is not a lineage file.
absl::StatusOr<OriginsByName> ReadLineageFile(FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_LINEAGE_FILE_H_
