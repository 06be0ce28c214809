// Checks protobuf messages without protobuf: a walk over the bytes, driven by one table of the messages of a GraphDef.
#ifndef PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_
#define PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// A message of io/formats/proto/graphdef.proto, or the entry of one of its maps.
enum class MessageType : uint8_t {
  kOpaque,  // Whatever its fields are, none needs a check beyond those of the wire format.
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

// OK exactly when protobuf's C++ parser would take `message` as a message of that type; otherwise DataLoss with the
// offset, counted from `base` before the message. `depth` is how many messages are round this one. Costs the structure,
// not the payloads: weights are not touched.
absl::Status CheckMessage(MessageType type, absl::string_view message, size_t base = 0, int depth = 0);

// True for text that is UTF-8 as protobuf demands it of its strings: no overlong form, no surrogate, nothing beyond
// U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_MESSAGE_RULES_H_
