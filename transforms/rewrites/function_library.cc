// Looks for nodes that may call functions.
#include "transforms/rewrites/function_library.h"

#include "graph/wire.h"

namespace permafrost {
namespace {

// Whether a list value holds functions; also true for one that is malformed.
bool MayHoldFunctions(const AttrValue& value) {
  WireReader reader(value.encoded());
  WireField field;
  while (reader.Next(&field)) {
    if (field.number != static_cast<uint32_t>(AttrValue::Kind::kList)) continue;
    constexpr uint32_t kFunctionsInList = 9;  // AttrValue.ListValue.func in attr_value.proto.
    WireReader list(field.bytes);
    WireField entry;
    while (list.Next(&entry)) {
      if (entry.number == kFunctionsInList) return true;
    }
    if (!list.status().ok()) return true;
  }
  return !reader.status().ok();
}

}  // namespace

bool MayCallFunctions(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->op().is_known()) return true;
    for (const Attr& attr : node->attrs()) {
      const AttrValue::Kind kind = attr.value.kind();
      if (kind == AttrValue::Kind::kFunction || kind == AttrValue::Kind::kPlaceholder) return true;
      if (kind == AttrValue::Kind::kList && MayHoldFunctions(attr.value)) return true;
    }
  }
  return false;
}

}  // namespace permafrost
