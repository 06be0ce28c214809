// The text form of a frozen graph: a GraphDef in protobuf's text format (.pbtxt).
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"

namespace permafrost {

// InvalidArgument with line and column for text that is not a GraphDef; other errors as ReadGraphDef. Attributes come
// in the order of their keys. Does not keep `text`.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDefText(absl::string_view text);

// Attributes go out in the order of their keys, so that equal graphs give equal text. Needs memory for the text of the
// largest node, not of the graph.
absl::Status WriteGraphDefText(const Graph& graph, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_
