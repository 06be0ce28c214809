// Sorts the unordered parts of a function library.
#include "tools/difference/canonical_library.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

// Messages of a function library: function.proto, node_def.proto and attr_value.proto of TensorFlow.
enum class Message : uint8_t {
  kOther,  // Compared as raw bytes.
  kGraph,
  kLibrary,
  kFunction,
  kNode,
  kArgEntry,   // An entry of the map arg_attr.
  kArgAttrs,   // Its values.
  kAttrEntry,  // An entry of a map of attributes.
  kAttrValue,
  kList,
  kFunctionRef,
};

struct Member {
  Message message = Message::kOther;
  bool is_ordered = true;  // False for maps, and for lists without meaningful order.
};

Member MemberOf(Message parent, uint32_t number) {
  struct Row {
    Message parent;
    uint32_t number;
    Member member;
  };
  static constexpr Row kRows[] = {
      {Message::kGraph, 2, {Message::kLibrary, true}},        // library
      {Message::kLibrary, 1, {Message::kFunction, false}},    // function
      {Message::kLibrary, 2, {Message::kOther, false}},       // gradient
      {Message::kFunction, 3, {Message::kNode, false}},       // node_def
      {Message::kFunction, 4, {Message::kOther, false}},      // ret
      {Message::kFunction, 5, {Message::kAttrEntry, false}},  // attr
      {Message::kFunction, 6, {Message::kOther, false}},      // control_ret
      {Message::kFunction, 7, {Message::kArgEntry, false}},   // arg_attr
      {Message::kFunction, 8, {Message::kOther, false}},      // resource_arg_unique_id
      {Message::kArgEntry, 2, {Message::kArgAttrs, true}},
      {Message::kArgAttrs, 1, {Message::kAttrEntry, false}},  // attr
      {Message::kNode, 5, {Message::kAttrEntry, false}},      // attr
      {Message::kAttrEntry, 2, {Message::kAttrValue, true}},
      {Message::kAttrValue, 1, {Message::kList, true}},
      {Message::kAttrValue, 10, {Message::kFunctionRef, true}},
      {Message::kList, 9, {Message::kFunctionRef, true}},
      {Message::kFunctionRef, 2, {Message::kAttrEntry, false}},  // attr
  };
  for (const Row& row : kRows) {
    if (row.parent == parent && row.number == number) return row.member;
  }
  return {};
}

absl::StatusOr<std::string> Canonical(absl::string_view bytes, Message message, int depth) {
  // Functions may be nested in attributes of functions, to a depth chosen by the file.
  if (depth > kMaxWireDepth) return absl::DataLossError("function library: attributes are nested too deep");
  struct Part {
    uint32_t number;
    bool is_ordered;
    std::string text;
  };
  std::vector<Part> parts;
  PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    const Member member = MemberOf(message, field.number);
    Part part = {field.number, member.is_ordered, std::string(field.whole)};
    if (field.type == WireType::kLengthDelimited && member.message != Message::kOther) {
      // The tag stands for the length, too: the parts are only compared, never parsed again.
      PF_ASSIGN_OR_RETURN(part.text, Canonical(field.bytes, member.message, depth + 1));
      part.text.insert(0, std::to_string(part.text.size()) + ":");
    }
    parts.push_back(std::move(part));
    return absl::OkStatus();
  }));
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if (a.number != b.number) return a.number < b.number;
    return !a.is_ordered && a.text < b.text;
  });
  std::string text;
  for (const Part& part : parts) {
    text += std::to_string(part.number) + "=";
    text += part.text;
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> CanonicalLibrary(absl::string_view library) {
  return Canonical(library, Message::kGraph, 0);
}

}  // namespace permafrost
