// Reads and writes a frozen graph as a serialised GraphDef (docs/formats/graphdef.md). Does not need protobuf.
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Reads a GraphDef. The graph keeps `owner` (if null, the caller keeps the bytes alive) and views `bytes`: names and
// weights are not copied, and weights are not read. All nested messages are checked, so that attributes are well-formed
// when they are decoded later. Accepts exactly the bytes that protobuf's parser accepts, with the same meaning.
//
// Returns DataLoss, with the byte offset, for a malformed message. Returns InvalidArgument, with the node, for a
// message that is not a valid graph: a node without name or op, two nodes with the same name, inputs that name no node
// or are malformed, a control input before a data input. These errors include byte offsets only with `name_offsets`;
// without it, bytes that the user never sees are not mentioned.
//
// With `dangling`, an input that names no node is no error: a node of op kNoSuchNodeOp is added at the end of the graph
// in its place, and a description of the input is appended to `*dangling`. Such a graph can be inspected, not run.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDef(absl::string_view bytes, Owner owner, bool name_offsets = true,
                                                    std::vector<std::string>* dangling = nullptr);

inline constexpr absl::string_view kNoSuchNodeOp = "_NoSuchNode";

// Returns the number of bytes that WriteGraphDef writes.
uint64_t GraphDefSize(const Graph& graph);

// Writes the graph. Fields are written in the order of their numbers, nodes and attributes in the order of the graph,
// so that a canonical file is reproduced byte for byte. Large values are passed to the sink as views. Returns
// FailedPrecondition, before writing anything, if the graph takes more than kMaxGraphDefBytes.
absl::Status WriteGraphDef(const Graph& graph, ByteSink* sink);

// Write the two parts of WriteGraphDef: one node as a field of the GraphDef, and everything after the nodes.
absl::Status WriteGraphDefNode(const Node& node, ByteSink* sink);
absl::Status WriteGraphDefSurroundings(const Graph& graph, ByteSink* sink);

// Protobuf's limit (2 GiB - 1).
inline constexpr uint64_t kMaxGraphDefBytes = 0x7fffffff;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_H_
