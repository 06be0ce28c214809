// Registers the binary and the text form of a GraphDef as formats.
#include "io/formats/graphdef_format.h"

#include "graph/base/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

absl::StatusOr<std::unique_ptr<Graph>> ReadBinary(const ModelSource& source, const OpenOptions& /*options*/) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  return ReadGraphDef(file.bytes, file.owner);
}

absl::StatusOr<std::unique_ptr<Graph>> ReadText(const ModelSource& source, const OpenOptions& /*options*/) {
  PF_ASSIGN_OR_RETURN(const FileView file, ReadAll(*source.bytes));
  return ReadGraphDefText(file.bytes);
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
