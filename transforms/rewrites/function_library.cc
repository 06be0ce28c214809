// Reads and edits GraphDef.library in its wire form.
#include "transforms/rewrites/function_library.h"

#include <memory>

#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"
#include "graph/wire_format/graphdef_fields.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Calls f(payload) for the fields `number` that hold a message or a string.
template <typename F>
absl::Status ForEachMessage(absl::string_view message, uint32_t number, F f) {
  return ForEachField(message, [&](const WireField& field) -> absl::Status {
    return IsMessage(field, number) ? f(field.bytes) : absl::OkStatus();
  });
}

// Reads the string in field `number`; the last one counts.
absl::Status ReadText(absl::string_view message, uint32_t number, absl::string_view* text) {
  return ForEachMessage(message, number, [&](absl::string_view bytes) {
    *text = bytes;
    return absl::OkStatus();
  });
}

absl::Status ReadNode(absl::string_view encoded, FunctionNode* node) {
  return ForEachField(encoded, [&](const WireField& field) -> absl::Status {
    if (IsMessage(field, fields::kName)) node->name = field.bytes;
    if (IsMessage(field, fields::kOp)) node->op = field.bytes;
    if (!IsMessage(field, fields::kAttr)) return absl::OkStatus();
    node->attrs.emplace_back();
    return ReadText(field.bytes, fields::kKey, &node->attrs.back());
  });
}

// Copies `message` to *copy. Replaces the payload of each field `number` for which `edit`(payload, &new payload)
// returns true.
template <typename Edit>
absl::Status CopyWithEdits(absl::string_view message, uint32_t number, std::string* copy, Edit edit) {
  return ForEachField(message, [&](const WireField& field) -> absl::Status {
    std::string edited;
    bool is_edited = false;
    if (IsMessage(field, number)) {
      PF_ASSIGN_OR_RETURN(is_edited, edit(field.bytes, &edited));
    }
    if (is_edited) {
      AppendBytesField(number, edited, copy);
    } else {
      copy->append(field.whole.data(), field.whole.size());
    }
    return absl::OkStatus();
  });
}

// Returns true if a list value holds functions or is malformed.
bool MayHoldFunctions(const AttrValue& value) {
  WireReader reader(value.encoded());
  WireField field;
  while (reader.Next(&field)) {
    if (field.number != static_cast<uint32_t>(AttrValue::Kind::kList)) continue;
    WireReader list(field.bytes);
    WireField entry;
    while (list.Next(&entry)) {
      if (entry.number == fields::kListFunction) return true;
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

absl::StatusOr<int64_t> AddAttrsInFunctions(Graph* graph,
                                            absl::FunctionRef<std::vector<NamedAttr>(const FunctionNode&)> missing) {
  int64_t changed_nodes = 0;
  const auto edit_node = [&](absl::string_view function, absl::string_view encoded,
                             std::string* edited) -> absl::StatusOr<bool> {
    FunctionNode node;
    node.function = function;
    PF_RETURN_IF_ERROR(ReadNode(encoded, &node));
    const std::vector<NamedAttr> attrs = missing(node);
    if (attrs.empty()) return false;
    edited->assign(encoded.data(), encoded.size());
    for (const NamedAttr& attr : attrs) {
      std::string entry;
      AppendBytesField(fields::kKey, attr.name, &entry);
      AppendBytesField(fields::kValue, attr.value.Encoded(), &entry);
      AppendBytesField(fields::kAttr, entry, edited);
    }
    ++changed_nodes;
    return true;
  };
  const auto edit_function = [&](absl::string_view encoded, std::string* edited) -> absl::StatusOr<bool> {
    absl::string_view name;
    PF_RETURN_IF_ERROR(ForEachMessage(encoded, fields::kSignature, [&](absl::string_view signature) {
      return ReadText(signature, fields::kSignatureName, &name);
    }));
    const int64_t before = changed_nodes;
    PF_RETURN_IF_ERROR(
        CopyWithEdits(encoded, fields::kBodyNode, edited,
                      [&](absl::string_view node, std::string* copy) { return edit_node(name, node, copy); }));
    return changed_nodes > before;
  };
  const auto edit_library = [&](absl::string_view encoded, std::string* edited) -> absl::StatusOr<bool> {
    PF_RETURN_IF_ERROR(CopyWithEdits(encoded, fields::kFunction, edited, edit_function));
    return changed_nodes > 0;
  };
  std::string library;
  PF_RETURN_IF_ERROR(
      Annotate(CopyWithEdits(graph->library(), fields::kLibrary, &library, edit_library), "function library"));
  if (changed_nodes > 0) graph->set_library(library);
  return changed_nodes;
}

absl::StatusOr<bool> PruneFunctions(Graph* graph) {
  if (graph->library().empty()) return false;
  if (!MayCallFunctions(*graph)) {
    graph->set_library("");
    return true;
  }
  PF_ASSIGN_OR_RETURN(FunctionLibrary library, FunctionLibrary::Of(*graph));
  for (const Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (!node->op().is_known() && library.Find(node->op().name()) == nullptr) return false;
  }
  PF_ASSIGN_OR_RETURN(const auto needed, library.Reachable(library.CalledBy(*graph)));
  const bool changes = library.Retain(needed) > 0;
  library.Store(graph);
  return changes;
}

}  // namespace permafrost
