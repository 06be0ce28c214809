// Implements writing of a GraphDef.
#include "io/formats/graphdef.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/graphdef_fields.h"
#include "graph/wire_format/node_def.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Appends the fields without a member in Graph, either those that precede `versions` or those that follow it.
void AppendRest(const Graph& graph, bool before_versions, std::string* out) {
  WireReader reader(graph.extra_fields());
  WireField field;
  while (reader.Next(&field)) {
    const bool is_version = field.number == fields::kVersion && field.type == WireType::kVarint;
    if (is_version == before_versions) absl::StrAppend(out, field.whole);
  }
}

}  // namespace

uint64_t GraphDefSize(const Graph& graph) {
  uint64_t size = graph.library().size() + graph.versions().size() + graph.extra_fields().size();
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    size += BytesFieldSize(fields::kNode, NodeDefSize(*node));
  }
  return size;
}

absl::Status WriteGraphDefNode(const Node& node, ByteSink* sink) {
  Gatherer out(sink);
  PF_RETURN_IF_ERROR(WriteNodeDef(node, fields::kNode, &out));
  return out.Flush();
}

absl::Status WriteGraphDefSurroundings(const Graph& graph, ByteSink* sink) {
  std::string text(graph.library());
  AppendRest(graph, /*before_versions=*/true, &text);
  absl::StrAppend(&text, graph.versions());
  AppendRest(graph, /*before_versions=*/false, &text);
  return text.empty() ? absl::OkStatus() : sink->Append(text);
}

absl::Status WriteGraphDef(const Graph& graph, ByteSink* sink) {
  const uint64_t size = GraphDefSize(graph);
  if (size > kMaxGraphDefBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the graph takes ", size, " bytes, but a GraphDef has at most ", kMaxGraphDefBytes,
                     "; a memory-mapped package (convert_graphdef_memmapped_format) has no such limit"));
  }
  Gatherer out(sink);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    PF_RETURN_IF_ERROR(WriteNodeDef(*node, fields::kNode, &out));
  }
  PF_RETURN_IF_ERROR(out.Flush());
  return WriteGraphDefSurroundings(graph, sink);
}

}  // namespace permafrost
