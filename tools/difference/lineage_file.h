// The file that transform_graph --lineage writes and compare_graphs --lineage reads: which nodes of the graph that was
// read each node of the graph that was written comes from. docs/formats/lineage.md describes it.
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

struct LineageNote {
  std::string in_graph;
  std::string out_graph;
  std::vector<std::string> transforms;  // The calls, in order.
};

// REQUIRES: `graph` records its lineage. Errors of the file system.
absl::Status WriteLineageFile(const Graph& graph, const LineageNote& note, FileSystem& files, const std::string& path);

struct NodeOrigins {
  std::string stands_for;  // The node whose place it has; empty for a node that is there in addition.
  std::vector<std::string> names;
  bool is_complete = true;
};

// By name of the node. A node that is not listed comes from the node of its own name.
using OriginsByName = absl::flat_hash_map<std::string, NodeOrigins>;

// InvalidArgument, naming the file and the place, for anything but such a file.
absl::StatusOr<OriginsByName> ReadLineageFile(FileSystem& files, const std::string& path);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_DIFFERENCE_LINEAGE_FILE_H_
