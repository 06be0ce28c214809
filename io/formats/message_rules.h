// Validates protobuf messages without protobuf, driven by a table of the messages in a GraphDef.
#ifndef PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_
#define PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// A message of io/formats/proto/graphdef.proto, or the entry of one of its maps.
enum class MessageType : uint8_t {
  kOpaque,  // A message that needs no checks beyond those of the wire format.
  kGraphDef,
  kNodeDef,
  kAttrEntry,
  kAttrValue,
  kListValue,
  kNameAttrList,
  kTensorProto,
  kTensorShape,
  kDim,
  kResourceHandle,
  kDtypeAndShape,
  kVariant,
  kDebugNames,
  kFullType,
  kVersionDef,
  kLibrary,
  kFunctionDef,
  kStringEntry,
  kArgAttrsEntry,
  kArgAttrs,
  kGradient,
  kRegisteredGradient,
  kOpDef,
  kArgDef,
  kAttrDef,
  kDeprecation,
  kDebugInfo,
  kTraceByNameEntry,
  kTraceByIdEntry,
  kStackTrace,
  kFrameEntry,
  kFileLineCol,
  kTraceIdEntry,
  kCount,
};

// Returns OK exactly if protobuf's C++ parser would accept `message` as a message of that type; otherwise DataLoss with
// the offset, where `base` is the offset of the message. `depth` is the number of enclosing messages. The cost depends
// on the structure: payloads such as weights are not read.
absl::Status CheckMessage(MessageType type, absl::string_view message, size_t base = 0, int depth = 0);

// True for valid UTF-8 in protobuf's sense: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_
