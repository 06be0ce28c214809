// Prints and compares graphs.
#include "tests/transforms/graph_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/wire_format/tensor_proto.h"
#include "io/formats/graphdef_text.h"
#include "transforms/rewrites/attr_content.h"

namespace permafrost {
namespace {

constexpr int64_t kMostListed = 64;

// Returns the wire form of AttrValue with a TensorProto whose elements are a typed list. Field numbers: tensor.proto.
std::string ListedTensor(const Tensor& tensor) {
  std::string values;
  uint32_t field = 0;
  DispatchOn<float>(tensor.dtype(), [&](auto) {
    field = 5;  // float_val
    values.assign(tensor.bytes().data(), tensor.bytes().size());
  });
  DispatchOn<int32_t, int16_t, int8_t, uint8_t, uint16_t>(tensor.dtype(), [&](auto tag) {
    field = 7;  // int_val
    const auto elements = tensor.elements<typename decltype(tag)::type>();
    for (size_t i = 0; i < elements.size(); ++i) AppendVarint(static_cast<uint64_t>(int64_t{elements[i]}), &values);
  });
  DispatchOn<int64_t>(tensor.dtype(), [&](auto) {
    field = 10;  // int64_val
    const auto elements = tensor.elements<int64_t>();
    for (size_t i = 0; i < elements.size(); ++i) AppendVarint(static_cast<uint64_t>(elements[i]), &values);
  });
  if (field == 0 || tensor.num_elements() > kMostListed) return "";
  std::string proto, attr;
  AppendVarintField(1, static_cast<uint64_t>(tensor.dtype()), &proto);
  AppendBytesField(2, EncodeShapeProto(tensor.shape()), &proto);
  if (!values.empty()) AppendBytesField(field, values, &proto);
  AppendBytesField(static_cast<uint32_t>(AttrValue::Kind::kTensor), proto, &attr);
  return attr;
}

// Returns one line for the node, with attribute values in text format, shortened.
std::string Describe(const Node& node) {
  std::string text = absl::StrCat(node.op().name(), "(");
  for (int i = 0; i < node.num_inputs(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", node.input(i).ToString());
  absl::StrAppend(&text, ")", node.device().empty() ? "" : absl::StrCat(" on ", node.device()));
  return text;
}

std::string Value(const AttrValue& value) {
  if (const absl::StatusOr<Tensor> tensor = value.AsTensor(); tensor.ok()) {
    std::string text = absl::StrCat(DTypeName(tensor->dtype()), tensor->shape().ToString());
    DispatchOn<float, int32_t, int64_t, uint8_t>(tensor->dtype(), [&](auto tag) {
      const auto elements = tensor->elements<typename decltype(tag)::type>();
      for (size_t i = 0; i < elements.size() && i < 8; ++i) absl::StrAppend(&text, " ", elements[i]);
      if (elements.size() > 8) absl::StrAppend(&text, " ...");
    });
    return text;
  }
  if (const auto type = value.AsType(); type.ok()) return DTypeName(*type);
  if (const auto shape = value.AsShape(); shape.ok()) return shape->ToString();
  if (const auto number = value.AsInt(); number.ok()) return absl::StrCat(*number);
  if (const auto number = value.AsFloat(); number.ok()) return absl::StrCat(*number);
  return absl::CEscape(value.Encoded().substr(0, 60));
}

void CompareAttrs(const Node& found, const Node& expected, std::vector<std::string>* differences) {
  for (const Attr& attr : found.attrs()) {
    const AttrValue* other = expected.FindAttr(attr.key);
    if (other == nullptr) {
      differences->push_back(absl::StrCat("attr '", attr.key, "': found ", Value(attr.value), ", expected none"));
    } else if (!SameContent(attr.value, *other)) {
      differences->push_back(
          absl::StrCat("attr '", attr.key, "': found ", Value(attr.value), ", expected ", Value(*other)));
    }
  }
  for (const Attr& attr : expected.attrs()) {
    if (found.HasAttr(attr.key)) continue;
    differences->push_back(absl::StrCat("attr '", attr.key, "': found none, expected ", Value(attr.value)));
  }
}

std::vector<absl::string_view> Order(const Graph& graph) {
  std::vector<absl::string_view> names;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) names.push_back(node->name());
  return names;
}

}  // namespace

absl::StatusOr<std::string> CompactText(const Graph& graph) {
  const std::unique_ptr<Graph> listed = graph.Clone();
  std::vector<std::string> kept;  // Owns the listed tensors until they are printed.
  kept.reserve(listed->num_nodes());
  for (Node* node = listed->first(); node != nullptr; node = node->next()) {
    const AttrValue* value = node->FindAttr("value");
    if (value == nullptr) continue;
    const absl::StatusOr<Tensor> tensor = value->AsTensor();
    if (!tensor.ok()) continue;
    kept.push_back(ListedTensor(*tensor));
    if (!kept.back().empty()) node->SetAttr("value", AttrValue::FromWire(kept.back(), nullptr));
  }
  StringSink sink;
  PF_RETURN_IF_ERROR(WriteGraphDefText(*listed, &sink));

  std::string text;
  int depth = 0;
  for (const absl::string_view raw : absl::StrSplit(sink.text(), '\n', absl::SkipEmpty())) {
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    const bool opens = absl::EndsWith(line, "{"), closes = line == "}";
    if (closes) --depth;
    const bool starts_line = depth == 0 || (depth == 1 && opens);
    if (starts_line) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", depth == 1 ? "  " : "");
    } else {
      absl::StrAppend(&text, " ");
    }
    absl::StrAppend(&text, line);
    if (opens) ++depth;
  }
  return absl::StrCat(text, "\n");
}

std::vector<std::string> GraphDifferences(const Graph& found, const Graph& expected) {
  std::vector<std::string> lines;
  for (const Node* node = found.first(); node != nullptr; node = node->next()) {
    const Node* other = expected.Find(node->name());
    if (other == nullptr) {
      lines.push_back(absl::StrCat("'", node->name(), "': found ", Describe(*node), ", expected no such node"));
      continue;
    }
    std::vector<std::string> differences;
    if (Describe(*node) != Describe(*other)) {
      differences.push_back(absl::StrCat("found ", Describe(*node), ", expected ", Describe(*other)));
    }
    CompareAttrs(*node, *other, &differences);
    if (node->extra_fields() != other->extra_fields()) differences.push_back("other fields of the node differ");
    std::string line;
    for (const std::string& difference : differences) absl::StrAppend(&line, line.empty() ? "" : "; ", difference);
    if (!line.empty()) lines.push_back(absl::StrCat("'", node->name(), "': ", line));
  }
  for (const Node* node = expected.first(); node != nullptr; node = node->next()) {
    if (found.Find(node->name()) != nullptr) continue;
    lines.push_back(absl::StrCat("'", node->name(), "': found no such node, expected ", Describe(*node)));
  }
  if (lines.empty() && Order(found) != Order(expected)) {
    lines.push_back(absl::StrCat("order: found ", absl::StrJoin(Order(found), " "), ", expected ",
                                 absl::StrJoin(Order(expected), " ")));
  }
  if (found.versions() != expected.versions()) lines.push_back("versions differ");
  if (found.library() != expected.library()) lines.push_back("the function library differs");
  if (found.extra_fields() != expected.extra_fields()) lines.push_back("other fields of the graph differ");
  return lines;
}

}  // namespace permafrost
