// Registers the binary and the text form of a GraphDef as formats.
#include "io/formats/graphdef_format.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

// `graph`, after telling the user of inputs that name no node.
absl::StatusOr<std::unique_ptr<Graph>> Told(absl::StatusOr<std::unique_ptr<Graph>> graph,
                                            const std::vector<std::string>& dangling, const OpenOptions& options) {
  if (!graph.ok() || options.tell == nullptr) return graph;
  for (const std::string& line : dangling) options.tell(line);
  return graph;
}

absl::StatusOr<std::unique_ptr<Graph>> ReadBinary(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  std::vector<std::string> dangling;
  std::vector<std::string>* const allowed = options.allow_dangling_inputs ? &dangling : nullptr;
  return Told(ReadGraphDef(file.bytes, file.owner, /*name_offsets=*/true, allowed), dangling, options);
}

absl::StatusOr<std::unique_ptr<Graph>> ReadText(const ModelSource& source, const OpenOptions& options) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  std::vector<std::string> dangling;
  std::vector<std::string>* const allowed = options.allow_dangling_inputs ? &dangling : nullptr;
  return Told(ReadGraphDefText(file.bytes, allowed), dangling, options);
}

// True for text that is not JSON, which starts with a brace.
bool MayBeText(const ModelSource& source) {
  return LooksLikeText(source.head.bytes) && !LooksLikeJson(source.head.bytes);
}

}  // namespace

const ModelFormat kGraphDefFormat{
    "pb",       "GraphDef",    ".pb",       [](const ModelSource& source) { return !LooksLikeText(source.head.bytes); },
    ReadBinary, WriteGraphDef, GraphDefSize};

const ModelFormat kGraphDefTextFormat{"pbtxt",  "text GraphDef",   ".pbtxt", MayBeText,
                                      ReadText, WriteGraphDefText, nullptr};

}  // namespace permafrost
