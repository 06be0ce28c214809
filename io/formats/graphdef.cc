// Writes a GraphDef.
#include "io/formats/graphdef.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/status.h"
#include "io/formats/graphdef_fields.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Values of at least this size go to the sink by themselves; smaller ones are gathered first.
constexpr size_t kLargeValue = 4096;

size_t InputSize(const Node& node, int i) {
  const TensorRef input = node.input(i);
  const size_t name = input.node->name().size();
  if (input.is_control()) return name + 1;
  if (input.port == 0) return node.input_spells_zero(i) ? name + 2 : name;
  size_t digits = 1;
  for (int rest = input.port; rest >= 10; rest /= 10) ++digits;
  return name + 1 + digits;
}

uint64_t AttrSize(const Attr& attr) {
  return BytesFieldSize(fields::kKey, attr.key.size()) + BytesFieldSize(fields::kValue, attr.value.EncodedSize());
}

uint64_t NodeSize(const Node& node) {
  uint64_t size = BytesFieldSize(fields::kName, node.name().size()) +
                  BytesFieldSize(fields::kOp, node.op().name().size()) + node.extra_fields().size();
  for (int i = 0; i < node.num_inputs(); ++i) size += BytesFieldSize(fields::kInput, InputSize(node, i));
  if (!node.device().empty()) size += BytesFieldSize(fields::kDevice, node.device().size());
  for (const Attr& attr : node.attrs()) size += BytesFieldSize(fields::kAttr, AttrSize(attr));
  return size;
}

void AppendInput(const Node& node, int i, std::string* out) {
  const TensorRef input = node.input(i);
  AppendLengthPrefix(fields::kInput, InputSize(node, i), out);
  if (input.is_control()) {
    absl::StrAppend(out, "^", input.node->name());
  } else if (input.port != 0 || node.input_spells_zero(i)) {
    absl::StrAppend(out, input.node->name(), ":", input.port);
  } else {
    absl::StrAppend(out, input.node->name());
  }
}

// Gathers small pieces for a sink.
class Gatherer {
 public:
  explicit Gatherer(ByteSink* sink) : sink_(sink) {}

  std::string* buffer() { return &buffer_; }

  absl::Status Flush() {
    if (buffer_.empty()) return absl::OkStatus();
    PF_RETURN_IF_ERROR(sink_->Append(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status FlushIfLarge() {
    constexpr size_t kEnough = 32 << 10;
    return buffer_.size() >= kEnough ? Flush() : absl::OkStatus();
  }

  absl::Status WriteValue(const AttrValue& value, uint64_t size) {
    if (size < kLargeValue && value.held_tensor() == nullptr) {
      absl::StrAppend(&buffer_, value.encoded());
      return absl::OkStatus();
    }
    PF_RETURN_IF_ERROR(Flush());
    return value.WriteTo(sink_);
  }

 private:
  ByteSink* sink_;
  std::string buffer_;
};

absl::Status WriteNode(const Node& node, Gatherer* out) {
  std::string* buffer = out->buffer();
  AppendLengthPrefix(fields::kNode, NodeSize(node), buffer);
  AppendBytesField(fields::kName, node.name(), buffer);
  AppendBytesField(fields::kOp, node.op().name(), buffer);
  for (int i = 0; i < node.num_inputs(); ++i) AppendInput(node, i, buffer);
  if (!node.device().empty()) AppendBytesField(fields::kDevice, node.device(), buffer);
  for (const Attr& attr : node.attrs()) {
    const uint64_t size = attr.value.EncodedSize();
    AppendLengthPrefix(fields::kAttr, AttrSize(attr), buffer);
    AppendBytesField(fields::kKey, attr.key, buffer);
    AppendLengthPrefix(fields::kValue, size, buffer);
    PF_RETURN_IF_ERROR(out->WriteValue(attr.value, size));
  }
  absl::StrAppend(buffer, node.extra_fields());
  return out->FlushIfLarge();
}

// The fields of the graph that have no member in it, those that belong before `versions` or those after.
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
    size += BytesFieldSize(fields::kNode, NodeSize(*node));
  }
  return size;
}

absl::Status WriteGraphDefNode(const Node& node, ByteSink* sink) {
  Gatherer out(sink);
  PF_RETURN_IF_ERROR(WriteNode(node, &out));
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
        absl::StrCat("the graph needs ", size, " bytes, but a GraphDef has at most ", kMaxGraphDefBytes,
                     "; a memory-mapped package (convert_graphdef_memmapped_format) has no such limit"));
  }
  Gatherer out(sink);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    PF_RETURN_IF_ERROR(WriteNode(*node, &out));
  }
  PF_RETURN_IF_ERROR(out.Flush());
  return WriteGraphDefSurroundings(graph, sink);
}

}  // namespace permafrost
