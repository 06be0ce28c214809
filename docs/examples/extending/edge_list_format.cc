// A graph as a list of edges, one line each: "producer:port consumer:index". Only written.
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/model_format.h"

namespace permafrost {
namespace {

constexpr size_t kFlushBytes = 1 << 16;

absl::Status WriteEdges(const Graph& graph, ByteSink* sink) {
  std::string text;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      absl::StrAppend(&text, node->input(i).ToString(), " ", node->name(), ":", i, "\n");
      if (text.size() < kFlushBytes) continue;
      PF_RETURN_IF_ERROR(sink->Append(text));
      text.clear();
    }
  }
  return sink->Append(text);
}

}  // namespace

// Declared in edge_list_format.h: `extern const ModelFormat kEdgeListFormat;`. A format that is read has `may_be` and
// `read`, too; every length and offset of the file is checked against the end of the bytes before it is used.
extern const ModelFormat kEdgeListFormat;
const ModelFormat kEdgeListFormat{"edges", "list of edges", ".edges", nullptr, nullptr, WriteEdges, nullptr};

}  // namespace permafrost
