// Reads a GraphDef in two passes: the nodes, then their inputs, which may name nodes further on.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/nearest.h"
#include "graph/status.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_fields.h"
#include "io/formats/message_rules.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

// Quotes a name of the file for a message: no control characters, no megabytes.
std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 200;
  return absl::StrCat("'", absl::Utf8SafeCEscape(text.substr(0, kMaxShown)), text.size() > kMaxShown ? "...'" : "'");
}

// Joins fields that stand in different places of a message. As long as they are neighbours the result is a view.
class FieldCollector {
 public:
  void Add(absl::string_view bytes) {
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

  // Valid as long as `graph`, after the last Add.
  absl::string_view Finish(Graph* graph) {
    if (owned_ == nullptr) return view_;
    graph->Retain(owned_);
    return *owned_;
  }

 private:
  absl::string_view view_;
  std::shared_ptr<std::string> owned_;
};

struct InputText {
  absl::string_view name;
  int port = 0;
  bool spells_zero = false;
};

// Takes "node", "node:port" and "^node" apart. False for anything else, and for a port that would be written otherwise.
bool ParseInput(absl::string_view text, InputText* input) {
  const size_t colon = text.find(':');
  input->name = text.substr(0, colon);
  if (!text.empty() && text[0] == '^') {
    input->name.remove_prefix(1);
    input->port = kControlPort;
    return !input->name.empty() && colon == absl::string_view::npos;
  }
  if (input->name.empty()) return false;
  if (colon == absl::string_view::npos) return true;
  const absl::string_view digits = text.substr(colon + 1);
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return false;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return false;
    if (__builtin_mul_overflow(input->port, 10, &input->port) ||
        __builtin_add_overflow(input->port, digit - '0', &input->port)) {
      return false;
    }
  }
  input->spells_zero = input->port == 0;
  return true;
}

class GraphDefReader {
 public:
  GraphDefReader(absl::string_view bytes, Owner owner, bool name_offsets)
      : bytes_(bytes), owner_(std::move(owner)), name_offsets_(name_offsets), graph_(std::make_unique<Graph>()) {}

  absl::StatusOr<std::unique_ptr<Graph>> Read() {
    if (bytes_.size() > kMaxGraphDefBytes) {
      return absl::DataLossError(
          absl::StrCat("the file has ", bytes_.size(), " bytes, but a GraphDef has at most ", kMaxGraphDefBytes));
    }
    PF_RETURN_IF_ERROR(CheckMessage(MessageType::kGraphDef, bytes_));
    if (owner_ != nullptr) graph_->Retain(owner_);
    ReserveNodes();
    PF_RETURN_IF_ERROR(ReadNodes());
    PF_RETURN_IF_ERROR(ConnectInputs());
    return std::move(graph_);
  }

 private:
  void ReserveNodes() {
    size_t nodes = 0;
    WireReader reader(bytes_);
    WireField field;
    while (reader.Next(&field)) nodes += field.number == fields::kNode && field.type == WireType::kLengthDelimited;
    graph_->Reserve(nodes);
  }

  absl::Status ReadNodes() {
    FieldCollector library, versions, rest;
    WireReader reader(bytes_);
    WireField field;
    while (reader.Next(&field)) {
      const bool is_message = field.type == WireType::kLengthDelimited;
      if (is_message && field.number == fields::kNode) {
        PF_RETURN_IF_ERROR(ReadNode(field.bytes));
      } else if (is_message && field.number == fields::kLibrary) {
        library.Add(field.whole);
      } else if (is_message && field.number == fields::kVersions) {
        versions.Add(field.whole);
      } else {
        rest.Add(field.whole);
      }
    }
    PF_RETURN_IF_ERROR(reader.status());
    graph_->SetSurroundingsView(library.Finish(graph_.get()), versions.Finish(graph_.get()), rest.Finish(graph_.get()));
    return absl::OkStatus();
  }

  absl::Status ReadNode(absl::string_view bytes) {
    absl::string_view name, op, device;
    FieldCollector rest;
    attrs_.clear();
    attr_index_.clear();
    WireReader reader(bytes);
    WireField field;
    while (reader.Next(&field)) {
      if (field.type != WireType::kLengthDelimited) {
        rest.Add(field.whole);
        continue;
      }
      switch (field.number) {
        case fields::kName:
          name = field.bytes;
          break;
        case fields::kOp:
          op = field.bytes;
          break;
        case fields::kInput:
          inputs_.push_back(field.bytes);
          break;
        case fields::kDevice:
          device = field.bytes;
          break;
        case fields::kAttr:
          PF_RETURN_IF_ERROR(ReadAttr(field.bytes));
          break;
        default:
          rest.Add(field.whole);
      }
    }
    PF_RETURN_IF_ERROR(reader.status());
    const auto invalid = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(name, op, graph_->num_nodes()), OffsetOf(bytes), ": ", what));
    };
    if (name.empty()) return invalid("has no name");
    if (op.empty()) return invalid("has no op");
    if (name[0] == '^' || name.find(':') != absl::string_view::npos) {
      return invalid("a name does not begin with '^' or contain ':', which mark control inputs and ports");
    }
    absl::StatusOr<Node*> node = graph_->AddNodeView(name, Op::Named(op), device);
    if (absl::IsAlreadyExists(node.status())) {
      const Node* const earlier = graph_->Find(name);
      return invalid(absl::StrCat("has the name of ", Place(name, earlier->op().name(), earlier->id()),
                                  ", expected unique names"));
    }
    PF_RETURN_IF_ERROR(node.status());
    for (PendingAttr& attr : attrs_) graph_->AppendAttrView(*node, attr.key, std::move(attr.value));
    graph_->SetExtraFieldsView(*node, rest.Finish(graph_.get()));
    input_ends_.push_back(inputs_.size());
    return absl::OkStatus();
  }

  absl::Status ReadAttr(absl::string_view entry) {
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
    AttrValue attr = merged == nullptr ? AttrValue::FromWire(value, owner_) : AttrValue::FromWire(*merged, merged);
    PendingAttr* const earlier = FindPending(key);
    if (earlier != nullptr) {
      earlier->value = std::move(attr);  // Of entries with equal keys the last counts.
      return absl::OkStatus();
    }
    attrs_.push_back({key, std::move(attr)});
    if (!attr_index_.empty()) attr_index_.emplace(key, attrs_.size() - 1);
    return absl::OkStatus();
  }

  struct PendingAttr {
    absl::string_view key;
    AttrValue value;
  };

  // Looks along the list while it is short, as it nearly always is.
  PendingAttr* FindPending(absl::string_view key) {
    constexpr size_t kShort = 16;
    if (attrs_.size() <= kShort) {
      for (PendingAttr& attr : attrs_) {
        if (attr.key == key) return &attr;
      }
      return nullptr;
    }
    if (attr_index_.empty()) {
      for (size_t i = 0; i < attrs_.size(); ++i) attr_index_.emplace(attrs_[i].key, i);
    }
    const auto found = attr_index_.find(key);
    return found == attr_index_.end() ? nullptr : &attrs_[found->second];
  }

  absl::Status ConnectInputs() {
    size_t next = 0;
    std::vector<absl::string_view> candidates;  // Filled for the first dangling input.
    std::vector<std::string> dangling;
    size_t num_dangling = 0;
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      bool after_control = false;
      for (const size_t begin = next; next < input_ends_[node->id()]; ++next) {
        InputText input;
        const auto place = [&] {
          return absl::StrCat(Place(node->name(), node->op().name(), node->id()), OffsetOf(inputs_[next]), ": input ",
                              next - begin, " is ", Quoted(inputs_[next]));
        };
        if (!ParseInput(inputs_[next], &input)) {
          return absl::InvalidArgumentError(absl::StrCat(place(), ", expected 'node', 'node:port' or '^node'"));
        }
        const bool is_control = input.port == kControlPort;
        if (after_control && !is_control) {
          return absl::InvalidArgumentError(
              absl::StrCat(place(), ", which follows a control input, expected data ", "inputs before control inputs"));
        }
        after_control = is_control;
        Node* const producer = graph_->Find(input.name);
        if (producer != nullptr) {
          graph_->AddInput(node, {producer, input.port}, input.spells_zero);
          continue;
        }
        constexpr size_t kMaxListed = 5;
        if (++num_dangling > kMaxListed) continue;
        if (candidates.empty()) {
          for (const Node* other = graph_->first(); other != nullptr; other = other->next()) {
            candidates.push_back(other->name());
          }
        }
        dangling.push_back(absl::StrCat(place(), ", but there is no such node", DidYouMean(input.name, candidates)));
      }
    }
    if (num_dangling == 0) return absl::OkStatus();
    std::string message;
    for (const std::string& line : dangling) absl::StrAppend(&message, message.empty() ? "" : "\n", line);
    if (num_dangling > dangling.size()) {
      absl::StrAppend(&message, "\nand ", num_dangling - dangling.size(), " more inputs name no node");
    }
    return absl::InvalidArgumentError(message);
  }

  // "node 'a' (Const) at index 2"
  static std::string Place(absl::string_view name, absl::string_view op, size_t index) {
    constexpr size_t kMaxShown = 100;
    return absl::StrCat("node ", Quoted(name), " (", absl::Utf8SafeCEscape(op.substr(0, kMaxShown)), ") at index ",
                        index);
  }

  std::string OffsetOf(absl::string_view part) const {
    return name_offsets_ ? absl::StrCat(", offset ", part.data() - bytes_.data()) : "";
  }

  absl::string_view bytes_;
  Owner owner_;
  bool name_offsets_;
  std::unique_ptr<Graph> graph_;
  std::vector<absl::string_view> inputs_;  // Of all nodes, one after the other.
  std::vector<size_t> input_ends_;         // By node id.
  // The attributes of the node being read.
  std::vector<PendingAttr> attrs_;
  absl::flat_hash_map<absl::string_view, size_t> attr_index_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDef(absl::string_view bytes, Owner owner, bool name_offsets) {
  return GraphDefReader(bytes, std::move(owner), name_offsets).Read();
}

}  // namespace permafrost
