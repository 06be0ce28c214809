// Implements the checks with a table of messages. The facts are those of io/formats/proto/graphdef.proto.
#include "io/formats/message_rules.h"

#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

// Check of a length-delimited field. Scalars need no rule: proto3's parser accepts any wire type for any field, and
// treats a mismatch as an unknown field.
enum class Check : uint8_t {
  kNone,
  kString,
  kMessage,
  kPackedVarint,
  kPackedFixed32,
  kPackedFixed64,
};

struct FieldRule {
  Check check = Check::kNone;
  MessageType message = MessageType::kOpaque;
};

constexpr uint32_t kMaxRuledField = 20;  // OpDef.control_output, the highest field number with a rule.

using MessageRule = std::array<FieldRule, kMaxRuledField + 1>;
using Rules = std::array<MessageRule, static_cast<size_t>(MessageType::kCount)>;

constexpr Rules MakeRules() {
  using M = MessageType;
  Rules rules{};
  const auto strings = [&rules](M message, std::initializer_list<uint32_t> fields) {
    for (const uint32_t field : fields) rules[static_cast<size_t>(message)][field].check = Check::kString;
  };
  const auto packed = [&rules](M message, Check check, std::initializer_list<uint32_t> fields) {
    for (const uint32_t field : fields) rules[static_cast<size_t>(message)][field].check = check;
  };
  const auto message = [&rules](M parent, uint32_t field, M child) {
    rules[static_cast<size_t>(parent)][field] = {Check::kMessage, child};
  };

  message(M::kGraphDef, 1, M::kNodeDef);
  message(M::kGraphDef, 2, M::kLibrary);
  message(M::kGraphDef, 4, M::kVersionDef);
  message(M::kGraphDef, 5, M::kDebugInfo);

  strings(M::kNodeDef, {1, 2, 3, 4});
  message(M::kNodeDef, 5, M::kAttrEntry);
  message(M::kNodeDef, 6, M::kDebugNames);
  message(M::kNodeDef, 7, M::kFullType);
  strings(M::kDebugNames, {1, 2});
  message(M::kFullType, 2, M::kFullType);
  strings(M::kFullType, {3});

  strings(M::kAttrEntry, {1});
  message(M::kAttrEntry, 2, M::kAttrValue);
  message(M::kAttrValue, 1, M::kListValue);
  message(M::kAttrValue, 7, M::kTensorShape);
  message(M::kAttrValue, 8, M::kTensorProto);
  strings(M::kAttrValue, {9});
  message(M::kAttrValue, 10, M::kNameAttrList);
  packed(M::kListValue, Check::kPackedVarint, {3, 5, 6});
  packed(M::kListValue, Check::kPackedFixed32, {4});
  message(M::kListValue, 7, M::kTensorShape);
  message(M::kListValue, 8, M::kTensorProto);
  message(M::kListValue, 9, M::kNameAttrList);
  strings(M::kNameAttrList, {1});
  message(M::kNameAttrList, 2, M::kAttrEntry);

  message(M::kTensorProto, 2, M::kTensorShape);
  packed(M::kTensorProto, Check::kPackedFixed32, {5, 9});
  packed(M::kTensorProto, Check::kPackedFixed64, {6, 12});
  packed(M::kTensorProto, Check::kPackedVarint, {7, 10, 11, 13, 16, 17});
  message(M::kTensorProto, 14, M::kResourceHandle);
  message(M::kTensorProto, 15, M::kVariant);
  message(M::kTensorShape, 2, M::kDim);
  strings(M::kDim, {2});
  strings(M::kResourceHandle, {1, 2, 3, 5});
  message(M::kResourceHandle, 6, M::kDtypeAndShape);
  message(M::kDtypeAndShape, 2, M::kTensorShape);
  strings(M::kVariant, {1});
  message(M::kVariant, 3, M::kTensorProto);

  packed(M::kVersionDef, Check::kPackedVarint, {3});

  message(M::kLibrary, 1, M::kFunctionDef);
  message(M::kLibrary, 2, M::kGradient);
  message(M::kLibrary, 3, M::kRegisteredGradient);
  strings(M::kGradient, {1, 2});
  strings(M::kRegisteredGradient, {1, 2});
  message(M::kFunctionDef, 1, M::kOpDef);
  message(M::kFunctionDef, 3, M::kNodeDef);
  message(M::kFunctionDef, 4, M::kStringEntry);
  message(M::kFunctionDef, 5, M::kAttrEntry);
  message(M::kFunctionDef, 6, M::kStringEntry);
  message(M::kFunctionDef, 7, M::kArgAttrsEntry);
  message(M::kFunctionDef, 8, M::kOpaque);
  strings(M::kStringEntry, {1, 2});
  message(M::kArgAttrsEntry, 2, M::kArgAttrs);
  message(M::kArgAttrs, 1, M::kAttrEntry);
  strings(M::kOpDef, {1, 5, 6, 20});
  message(M::kOpDef, 2, M::kArgDef);
  message(M::kOpDef, 3, M::kArgDef);
  message(M::kOpDef, 4, M::kAttrDef);
  message(M::kOpDef, 8, M::kDeprecation);
  strings(M::kArgDef, {1, 2, 4, 5, 6});
  message(M::kArgDef, 7, M::kDtypeAndShape);
  message(M::kArgDef, 17, M::kFullType);
  strings(M::kAttrDef, {1, 2, 4});
  message(M::kAttrDef, 3, M::kAttrValue);
  message(M::kAttrDef, 7, M::kAttrValue);
  strings(M::kDeprecation, {2});

  strings(M::kDebugInfo, {1});
  message(M::kDebugInfo, 2, M::kTraceByNameEntry);
  message(M::kDebugInfo, 4, M::kFrameEntry);
  message(M::kDebugInfo, 5, M::kTraceIdEntry);
  message(M::kDebugInfo, 6, M::kTraceByIdEntry);
  strings(M::kTraceByNameEntry, {1});
  message(M::kTraceByNameEntry, 2, M::kStackTrace);
  message(M::kTraceByIdEntry, 2, M::kStackTrace);
  message(M::kStackTrace, 1, M::kFileLineCol);
  packed(M::kStackTrace, Check::kPackedFixed64, {2});
  message(M::kFrameEntry, 2, M::kFileLineCol);
  strings(M::kFileLineCol, {4, 5});
  strings(M::kTraceIdEntry, {1});
  return rules;
}

constexpr Rules kRules = MakeRules();

absl::Status Malformed(size_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("offset ", offset, ": ", what));
}

// True for a single short number, the common case of attribute values. It needs no check in any message.
bool IsShortNumber(absl::string_view message) {
  if (message.size() != 2) return false;
  const uint8_t tag = static_cast<uint8_t>(message[0]), value = static_cast<uint8_t>(message[1]);
  return tag >= (1 << 3) && tag < 0x80 && static_cast<WireType>(tag & 7) == WireType::kVarint && value < 0x80;
}

absl::Status CheckPackedVarints(absl::string_view list, size_t offset) {
  uint64_t value;
  bool error = false;
  while (NextPackedVarint(&list, &value, &error)) {
  }
  return error ? Malformed(offset, "the packed list is truncated within a number") : absl::OkStatus();
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    uint64_t eight;
    while (end - at >= 8 && (std::memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) at += 8;
    if (at == end) return true;
    const uint8_t lead = static_cast<uint8_t>(*at++);
    if (lead < 0x80) continue;
    // The range of the second byte excludes overlong forms (E0, F0), surrogates (ED) and code points above U+10FFFF
    // (F4).
    int more;
    uint8_t low = 0x80, high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (at == end) return false;
      const uint8_t next = static_cast<uint8_t>(*at++);
      if (next < low || next > high) return false;
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

absl::Status CheckMessage(MessageType type, absl::string_view message, size_t base, int depth) {
  // The open messages, innermost last. An explicit stack, because the file determines the nesting depth.
  struct Open {
    WireReader reader;
    const MessageRule* rule;
  };
  const char* const begin = message.data();
  const auto open_message = [&](MessageType of, absl::string_view bytes, size_t around) {
    const size_t offset = base + static_cast<size_t>(bytes.data() - begin);
    return Open{WireReader(bytes, offset, kMaxWireDepth - static_cast<int>(around)), &kRules[static_cast<size_t>(of)]};
  };
  constexpr size_t kUsualDepth = 8;
  std::vector<Open> stack;
  stack.reserve(kUsualDepth);
  stack.push_back(open_message(type, message, static_cast<size_t>(depth)));
  WireField field;
  while (!stack.empty()) {
    Open& top = stack.back();
    if (!top.reader.Next(&field)) {
      if (!top.reader.status().ok()) return top.reader.status();
      stack.pop_back();
      continue;
    }
    if (field.type != WireType::kLengthDelimited || field.number > kMaxRuledField) continue;
    const FieldRule& rule = (*top.rule)[field.number];
    if (rule.check == Check::kNone) continue;
    const size_t offset = base + static_cast<size_t>(field.bytes.data() - begin);
    switch (rule.check) {
      case Check::kNone:
        break;
      case Check::kString:
        if (!IsUtf8(field.bytes)) {
          constexpr size_t kShown = 40;
          return Malformed(
              offset, absl::StrCat("the text '", absl::CHexEscape(field.bytes.substr(0, kShown)), "' is not UTF-8"));
        }
        break;
      case Check::kMessage: {
        const size_t around = static_cast<size_t>(depth) + stack.size();
        if (around > static_cast<size_t>(kMaxWireDepth)) {
          return Malformed(offset, absl::StrCat("messages are nested more than ", kMaxWireDepth, " deep"));
        }
        if (!IsShortNumber(field.bytes)) stack.push_back(open_message(rule.message, field.bytes, around));
        break;
      }
      case Check::kPackedVarint: {
        const absl::Status status = CheckPackedVarints(field.bytes, offset);
        if (!status.ok()) return status;
        break;
      }
      case Check::kPackedFixed32:
      case Check::kPackedFixed64: {
        const size_t size = rule.check == Check::kPackedFixed32 ? 4 : 8;
        if (field.bytes.size() % size != 0) return Malformed(offset, "the packed list is truncated within a number");
        break;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace permafrost
