// Reads and writes a frozen graph in protobuf's text format (.pbtxt).
#ifndef PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_
#define PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/wire.h"
#include "graph/graph.h"

namespace permafrost {

// Parses a text GraphDef. Returns InvalidArgument, with line and column, for malformed text; other errors are those of
// ReadGraphDef. Attributes are sorted by key. Does not keep `text`.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDefText(absl::string_view text,
                                                        std::vector<std::string>* dangling = nullptr);

// Writes the graph. Attributes are sorted by key, so that equal graphs have equal text. Needs memory for the text of
// the largest node only.
absl::Status WriteGraphDefText(const Graph& graph, ByteSink* sink);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_GRAPHDEF_TEXT_H_
