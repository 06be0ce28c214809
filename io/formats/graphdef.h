// The binary form of a frozen graph: a serialised GraphDef (docs/formats/graphdef.md). Needs no protobuf.
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// The graph keeps `owner` (null: the caller keeps the bytes alive) and views `bytes`: names and weights are not copied,
// and weights are not touched. Everything nested is checked, so that what hangs on a node is well-formed when it is
// read later. Takes any bytes that protobuf's parser takes, and what they mean is the same.
//
// DataLoss, with the byte offset: not a well-formed GraphDef. InvalidArgument, with the node: well-formed, but not a
// graph (no name or op, two nodes of one name, inputs that name no node or are misspelt, a control input before data).
// The latter leave out byte offsets without `name_offsets`, for bytes that the user has never seen.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDef(absl::string_view bytes, Owner owner, bool name_offsets = true);

// Bytes that WriteGraphDef makes of the graph.
uint64_t GraphDefSize(const Graph& graph);

// Fields go out in the order of their numbers, nodes and attributes in the order of the graph, so that the graph of a
// canonical file gives that file again, byte for byte. Large values reach the sink as the views that they are.
// FailedPrecondition, before anything is written, when the graph needs more than kMaxGraphDefBytes.
absl::Status WriteGraphDef(const Graph& graph, ByteSink* sink);

// The parts of what WriteGraphDef writes: one node, as a field of the GraphDef, and everything after the nodes.
absl::Status WriteGraphDefNode(const Node& node, ByteSink* sink);
absl::Status WriteGraphDefSurroundings(const Graph& graph, ByteSink* sink);

// Protobuf's limit (2 GiB - 1).
inline constexpr uint64_t kMaxGraphDefBytes = 0x7fffffff;

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_H_
