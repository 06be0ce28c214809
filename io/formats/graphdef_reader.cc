// Implements reading of a GraphDef in two passes: the nodes, then their inputs, which may refer to later nodes.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/wire_format/graphdef_fields.h"
#include "graph/wire_format/node_def.h"
#include "io/formats/graphdef.h"
#include "io/formats/message_rules.h"

namespace permafrost {
namespace {

namespace fields = graphdef_fields;

struct InputText {
  absl::string_view name;
  int port = 0;
  bool spells_zero = false;
};

// Parses "node", "node:port" and "^node". Returns false for other text, and for a port that is not in canonical form.
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
  if (!ParsePort(text.substr(colon + 1), &input->port)) return false;
  input->spells_zero = input->port == 0;
  return true;
}

class GraphDefReader {
 public:
  GraphDefReader(absl::string_view bytes, Owner owner, bool name_offsets, std::vector<std::string>* dangling)
      : bytes_(bytes),
        owner_(std::move(owner)),
        name_offsets_(name_offsets),
        dangling_(dangling),
        node_reader_(owner_),
        graph_(std::make_unique<Graph>()) {}

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
    input_ends_.reserve(nodes);
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
      } else if (!is_message || field.number != fields::kCertificate) {
        // A certificate is of the bytes that are read: a graph that is written anew has none.
        rest.Add(field.whole);
      }
    }
    PF_RETURN_IF_ERROR(reader.status());
    graph_->SetSurroundingsView(library.Finish(graph_.get()), versions.Finish(graph_.get()), rest.Finish(graph_.get()));
    return absl::OkStatus();
  }

  absl::Status ReadNode(absl::string_view bytes) {
    PF_RETURN_IF_ERROR(node_reader_.Read(bytes, graph_.get(), &inputs_));
    const auto invalid = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat(node_reader_.Place(graph_->num_nodes()), OffsetOf(bytes), ": ", what));
    };
    if (const absl::string_view problem = node_reader_.Problem(); !problem.empty()) return invalid(problem);
    absl::StatusOr<Node*> node =
        graph_->AddNodeView(node_reader_.name(), Op::Named(node_reader_.op()), node_reader_.device());
    if (absl::IsAlreadyExists(node.status())) {
      const Node* const earlier = graph_->Find(node_reader_.name());
      return invalid(absl::StrCat("has the same name as ",
                                  NodeDefReader::NodePlace(earlier->name(), earlier->op().name(), earlier->id()),
                                  ", expected unique names"));
    }
    PF_RETURN_IF_ERROR(node.status());
    graph_->ReserveAttrs(*node, node_reader_.attrs()->size());
    for (Attr& attr : *node_reader_.attrs()) graph_->AppendAttrView(*node, attr.key, std::move(attr.value));
    graph_->SetExtraFieldsView(*node, node_reader_.extra_fields());
    input_ends_.push_back(inputs_.size());
    return absl::OkStatus();
  }

  absl::Status ConnectInputs() {
    size_t next = 0;
    std::vector<absl::string_view> candidates;  // Filled when the first dangling input is found.
    std::vector<std::string> dangling;
    size_t num_dangling = 0;
    const size_t num_read = input_ends_.size();  // Nodes that stand for missing ones follow, without inputs.
    for (Node* node = graph_->first(); node != nullptr && node->id() < num_read; node = node->next()) {
      bool after_control = false;
      for (const size_t begin = next; next < input_ends_[node->id()]; ++next) {
        InputText input;
        const auto place = [&] {
          return absl::StrCat(NodeDefReader::NodePlace(node->name(), node->op().name(), node->id()),
                              OffsetOf(inputs_[next]), ": input ", next - begin, " is ", Quoted(inputs_[next]));
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
        if (++num_dangling <= kMaxListed) {
          if (candidates.empty()) {
            for (const Node* other = graph_->first(); other != nullptr; other = other->next()) {
              candidates.push_back(other->name());
            }
          }
          dangling.push_back(absl::StrCat(place(), ", but there is no such node", DidYouMean(input.name, candidates)));
        }
        if (dangling_ == nullptr) continue;
        PF_ASSIGN_OR_RETURN(Node * stand_in, graph_->AddNodeView(input.name, Op::Named(kNoSuchNodeOp), ""));
        graph_->AddInput(node, {stand_in, input.port}, input.spells_zero);
      }
    }
    if (num_dangling == 0) return absl::OkStatus();
    if (dangling_ != nullptr) {
      if (num_dangling > dangling.size()) {
        dangling.push_back(absl::StrCat(num_dangling - dangling.size(), " more inputs name no node"));
      }
      *dangling_ = std::move(dangling);
      return absl::OkStatus();
    }
    std::string message;
    for (const std::string& line : dangling) absl::StrAppend(&message, message.empty() ? "" : "\n", line);
    if (num_dangling > dangling.size()) {
      absl::StrAppend(&message, "\nand ", num_dangling - dangling.size(), " more inputs name no node");
    }
    return absl::InvalidArgumentError(message);
  }

  std::string OffsetOf(absl::string_view part) const {
    return name_offsets_ ? absl::StrCat(", offset ", part.data() - bytes_.data()) : "";
  }

  absl::string_view bytes_;
  Owner owner_;
  bool name_offsets_;
  std::vector<std::string>* dangling_;  // Null: such inputs are an error.
  NodeDefReader node_reader_;
  std::unique_ptr<Graph> graph_;
  std::vector<absl::string_view> inputs_;  // Inputs of all nodes, in order.
  std::vector<size_t> input_ends_;         // By node id.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ReadGraphDef(absl::string_view bytes, Owner owner, bool name_offsets,
                                                    std::vector<std::string>* dangling) {
  return GraphDefReader(bytes, std::move(owner), name_offsets, dangling).Read();
}

}  // namespace permafrost
