// Implements reading and writing of NodeDef.
#include "graph/wire_format/node_def.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/wire_format/graphdef_fields.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Values of at least this size are passed to the sink directly; smaller ones are gathered first.
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

uint64_t AttrSize(const Attr& attr) {
  return BytesFieldSize(fields::kKey, attr.key.size()) + BytesFieldSize(fields::kValue, attr.value.EncodedSize());
}

}  // namespace

void FieldCollector::Add(absl::string_view bytes) {
  if (owned_ != nullptr) {
    owned_->append(bytes.data(), bytes.size());
  } else if (view_.empty()) {
    view_ = bytes;
  } else if (view_.data() + view_.size() == bytes.data()) {
    view_ = absl::string_view(view_.data(), view_.size() + bytes.size());
  } else {
    owned_ = std::make_shared<std::string>(absl::StrCat(view_, bytes));
  }
}

absl::string_view FieldCollector::Finish(Graph* graph) {
  if (owned_ == nullptr) return view_;
  graph->Retain(owned_);
  return *owned_;
}

absl::Status AttrCollector::Add(absl::string_view entry, const Owner& owner) {
  absl::string_view key, value;
  std::shared_ptr<std::string> merged;
  bool has_value = false;
  WireReader reader(entry);
  WireField field;
  while (reader.Next(&field)) {
    if (field.type != WireType::kLengthDelimited) continue;
    if (field.number == fields::kKey) {
      key = field.bytes;
    } else if (field.number == fields::kValue) {
      if (merged != nullptr) {
        merged->append(field.bytes.data(), field.bytes.size());
      } else if (has_value) {
        merged = std::make_shared<std::string>(absl::StrCat(value, field.bytes));
      } else {
        value = field.bytes;
      }
      has_value = true;
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  AttrValue attr = merged == nullptr ? AttrValue::FromWire(value, owner) : AttrValue::FromWire(*merged, merged);
  if (Attr* const earlier = Find(key); earlier != nullptr) {
    earlier->value = std::move(attr);
    return absl::OkStatus();
  }
  attrs_.push_back({key, std::move(attr)});
  if (!index_.empty()) index_.emplace(key, attrs_.size() - 1);
  return absl::OkStatus();
}

void AttrCollector::Clear() {
  attrs_.clear();
  index_.clear();
}

// Searches linearly while the list is short, which is the common case.
Attr* AttrCollector::Find(absl::string_view key) {
  constexpr size_t kShort = 16;
  if (attrs_.size() <= kShort) {
    for (Attr& attr : attrs_) {
      if (attr.key == key) return &attr;
    }
    return nullptr;
  }
  if (index_.empty()) {
    for (size_t i = 0; i < attrs_.size(); ++i) index_.emplace(attrs_[i].key, i);
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &attrs_[found->second];
}

absl::Status NodeDefReader::Read(absl::string_view bytes, Graph* graph, std::vector<absl::string_view>* inputs) {
  name_ = op_ = device_ = {};
  FieldCollector rest;
  attrs_.Clear();
  WireReader reader(bytes);
  WireField field;
  while (reader.Next(&field)) {
    if (field.type != WireType::kLengthDelimited) {
      rest.Add(field.whole);
      continue;
    }
    switch (field.number) {
      case fields::kName:
        name_ = field.bytes;
        break;
      case fields::kOp:
        op_ = field.bytes;
        break;
      case fields::kInput:
        inputs->push_back(field.bytes);
        break;
      case fields::kDevice:
        device_ = field.bytes;
        break;
      case fields::kAttr:
        PF_RETURN_IF_ERROR(attrs_.Add(field.bytes, owner_));
        break;
      default:
        rest.Add(field.whole);
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  extra_fields_ = rest.Finish(graph);
  return absl::OkStatus();
}

absl::string_view NodeDefReader::Problem() const {
  if (name_.empty()) return "has no name";
  if (op_.empty()) return "has no op";
  if (name_[0] == '^' || name_.find(':') != absl::string_view::npos) {
    return "the name begins with '^' or contains ':', which are reserved for control inputs and ports";
  }
  return "";
}

std::string NodeDefReader::NodePlace(absl::string_view name, absl::string_view op, size_t index) {
  constexpr size_t kMaxShown = 100;
  return absl::StrCat("node ", Quoted(name), " (", absl::Utf8SafeCEscape(op.substr(0, kMaxShown)), ") at index ",
                      index);
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 200;
  return absl::StrCat("'", absl::Utf8SafeCEscape(text.substr(0, kMaxShown)), text.size() > kMaxShown ? "...'" : "'");
}

bool ParsePort(absl::string_view digits, int* port) {
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return false;
  *port = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return false;
    if (__builtin_mul_overflow(*port, 10, port) || __builtin_add_overflow(*port, digit - '0', port)) return false;
  }
  return true;
}

absl::Status Gatherer::Flush() {
  if (buffer_.empty()) return absl::OkStatus();
  PF_RETURN_IF_ERROR(sink_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status Gatherer::FlushIfLarge() {
  constexpr size_t kEnough = 32 << 10;
  return buffer_.size() >= kEnough ? Flush() : absl::OkStatus();
}

absl::Status Gatherer::WriteValue(const AttrValue& value, uint64_t size) {
  if (size < kLargeValue && value.held_tensor() == nullptr) {
    absl::StrAppend(&buffer_, value.encoded());
    return absl::OkStatus();
  }
  PF_RETURN_IF_ERROR(Flush());
  return value.WriteTo(sink_);
}

uint64_t NodeDefSize(const Node& node, const std::vector<std::string>* input_texts) {
  uint64_t size = BytesFieldSize(fields::kName, node.name().size()) +
                  BytesFieldSize(fields::kOp, node.op().name().size()) + node.extra_fields().size();
  for (int i = 0; i < node.num_inputs(); ++i) {
    size += BytesFieldSize(fields::kInput, input_texts == nullptr ? InputSize(node, i) : (*input_texts)[i].size());
  }
  if (!node.device().empty()) size += BytesFieldSize(fields::kDevice, node.device().size());
  for (const Attr& attr : node.attrs()) size += BytesFieldSize(fields::kAttr, AttrSize(attr));
  return size;
}

absl::Status WriteNodeDef(const Node& node, uint32_t number, Gatherer* out,
                          const std::vector<std::string>* input_texts) {
  std::string* buffer = out->buffer();
  AppendLengthPrefix(number, NodeDefSize(node, input_texts), buffer);
  AppendBytesField(fields::kName, node.name(), buffer);
  AppendBytesField(fields::kOp, node.op().name(), buffer);
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (input_texts == nullptr) {
      AppendInput(node, i, buffer);
    } else {
      AppendBytesField(fields::kInput, (*input_texts)[i], buffer);
    }
  }
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

}  // namespace permafrost
