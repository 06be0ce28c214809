// Implements Graph and Node: storage, order of nodes, edges, interface and typed access to attributes.
#include "graph/graph.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/graph_source.h"
#include "graph/lineage.h"
#include "graph/ops/op_schema.h"

namespace permafrost {

namespace {

// With more control inputs than this, RemoveInput does not keep their order, because closing the gap costs time
// proportional to their number.
constexpr int kMostControlInputsInOrder = 64;

}  // namespace

std::string TensorRef::ToString() const {
  if (is_control()) return absl::StrCat("^", node->name());
  return port == 0 ? std::string(node->name()) : absl::StrCat(node->name(), ":", port);
}

// --- Node --------------------------------------------------------------------------------------------------------

const AttrValue* Node::FindAttr(absl::string_view key) const {
  for (const Attr& attr : attrs_) {
    if (attr.key == key) return &attr.value;
  }
  return nullptr;
}

void Node::SetAttr(absl::string_view key, AttrValue value) {
  for (Attr& attr : attrs_) {
    if (attr.key == key) {
      attr.value = std::move(value);
      return;
    }
  }
  attrs_.push_back({graph_->Intern(key), std::move(value)});
}

bool Node::RemoveAttr(absl::string_view key) {
  for (auto it = attrs_.begin(); it != attrs_.end(); ++it) {
    if (it->key == key) {
      attrs_.erase(it);
      return true;
    }
  }
  return false;
}

void Node::CopyAttrs(const Node& from) {
  attrs_ = from.attrs_;
  if (from.graph_ == graph_) return;
  for (Attr& attr : attrs_) attr.key = graph_->Intern(attr.key);
}

void Node::set_device(absl::string_view device) { device_ = graph_->Intern(device); }
void Node::set_extra_fields(absl::string_view bytes) { extra_fields_ = graph_->Intern(bytes); }

std::string Node::Describe() const { return absl::StrCat("node '", name_, "' (", op_.name(), ")"); }

// --- Reading and cloning -----------------------------------------------------------------------------------------

Graph::Graph() = default;
Graph::~Graph() = default;

std::unique_ptr<Graph> Graph::Clone() const {
  auto copy = std::make_unique<Graph>();
  copy->owners_ = owners_;
  copy->by_name_.reserve(num_nodes_);
  copy->Retain(texts_);
  std::vector<Node*> twin(storage_.size(), nullptr);
  for (const Node* node = first_; node != nullptr; node = node->next_) {
    Node& made = copy->storage_.Add();
    made.graph_ = copy.get();
    made.id_ = static_cast<uint32_t>(copy->storage_.size() - 1);
    made.name_ = node->name_;
    made.device_ = node->device_;
    made.extra_fields_ = node->extra_fields_;
    made.op_ = node->op_;
    made.attrs_ = node->attrs_;
    copy->by_name_.emplace(made.name_, &made);
    copy->Link(&made, nullptr);
    twin[node->id_] = &made;
  }
  for (const Node* node = first_; node != nullptr; node = node->next_) {
    Node* made = twin[node->id_];
    made->num_data_inputs_ = node->num_data_inputs_;
    made->inputs_ = node->inputs_;
    for (uint32_t i = 0; i < made->inputs_.size(); ++i) {
      made->inputs_[i].producer = twin[made->inputs_[i].producer->id_];
      copy->AttachUse(made, i);
    }
  }
  const auto translate = [&](const std::vector<Endpoint>& from, std::vector<Endpoint>* to,
                             absl::flat_hash_set<const Node*>* nodes) {
    for (Endpoint endpoint : from) {
      if (endpoint.node != nullptr) {
        endpoint.node = twin[endpoint.node->id_];
        nodes->insert(endpoint.node);
      }
      to->push_back(std::move(endpoint));
    }
  };
  translate(declared_inputs_, &copy->declared_inputs_, &copy->input_nodes_);
  translate(declared_outputs_, &copy->declared_outputs_, &copy->output_nodes_);
  copy->library_ = library_;
  copy->versions_ = versions_;
  copy->extra_fields_ = extra_fields_;
  if (lineage_ != nullptr) {
    std::vector<uint32_t> source;
    source.reserve(num_nodes_);
    for (const Node* node = first_; node != nullptr; node = node->next_) source.push_back(node->id_);
    copy->lineage_ = lineage_->CloneFor(source);
  }
  return copy;
}

std::vector<Node*> Graph::Nodes() const {
  std::vector<Node*> nodes;
  nodes.reserve(num_nodes_);
  for (Node* node = first_; node != nullptr; node = node->next_) nodes.push_back(node);
  return nodes;
}

Node* Graph::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::string Graph::UniqueName(absl::string_view base) const {
  if (Find(base) == nullptr) return std::string(base);
  // The remembered suffix only grows: a smaller suffix that has become free since is not reused.
  for (int& suffix = next_suffix_.try_emplace(base, 1).first->second;; ++suffix) {
    std::string name = absl::StrCat(base, "_", suffix);
    if (Find(name) == nullptr) return name;
  }
}

namespace {

using OwnersAndTexts = const std::pair<std::vector<Owner>, Owner>;

// Keeps a source alive, and identifies its owner among the owners of a graph.
struct SourceHolder {
  std::shared_ptr<const GraphSource> source;
  void operator()(const void* /*object*/) { source.reset(); }
};

}  // namespace

Owner Graph::Memory() const { return std::make_shared<OwnersAndTexts>(owners_, texts_); }

void AttachSource(Graph* graph, std::shared_ptr<const GraphSource> source) {
  const void* object = source.get();
  graph->Retain(Owner(object, SourceHolder{std::move(source)}));
}

std::shared_ptr<const GraphSource> SourceOf(const Graph& graph) {
  const Owner memory = graph.Memory();
  const std::vector<Owner>& owners = static_cast<OwnersAndTexts*>(memory.get())->first;
  for (auto owner = owners.rbegin(); owner != owners.rend(); ++owner) {
    if (const auto* holder = std::get_deleter<SourceHolder>(*owner)) return holder->source;
  }
  return nullptr;
}

absl::string_view Graph::Intern(absl::string_view text) {
  if (text.empty()) return {};
  const auto found = texts_->index.find(text);
  if (found != texts_->index.end()) return *found;
  const absl::string_view kept = texts_->texts.emplace_back(text);
  texts_->index.insert(kept);
  return kept;
}

// --- Nodes -------------------------------------------------------------------------------------------------------

void Graph::Link(Node* node, Node* position) {
  node->next_ = position;
  node->previous_ = position == nullptr ? last_ : position->previous_;
  (node->previous_ == nullptr ? first_ : node->previous_->next_) = node;
  (position == nullptr ? last_ : position->previous_) = node;
  ++num_nodes_;
}

void Graph::Unlink(Node* node) {
  (node->previous_ == nullptr ? first_ : node->previous_->next_) = node->next_;
  (node->next_ == nullptr ? last_ : node->next_->previous_) = node->previous_;
  node->previous_ = node->next_ = nullptr;
  --num_nodes_;
}

absl::StatusOr<Node*> Graph::AddNodeView(absl::string_view name, Op op, absl::string_view device) {
  if (name.empty()) return absl::InvalidArgumentError("a node has an empty name");
  if (storage_.size() >= UINT32_MAX) return absl::ResourceExhaustedError("a graph holds at most 2^32 - 1 nodes");
  const auto [entry, is_new] = by_name_.try_emplace(name, nullptr);
  if (!is_new) {
    return absl::AlreadyExistsError(
        absl::StrCat("two nodes have the name '", name, "' (", entry->second->op().name(), " and ", op.name(), ")"));
  }
  Node& node = storage_.Add();
  entry->second = &node;
  node.graph_ = this;
  node.id_ = static_cast<uint32_t>(storage_.size() - 1);
  node.name_ = name;
  node.device_ = device;
  node.op_ = op;
  Link(&node, nullptr);
  if (lineage_ != nullptr) lineage_->OnAdded(node);
  return &node;
}

absl::StatusOr<Node*> Graph::AddNode(absl::string_view name, Op op, Node* position) {
  PF_ASSIGN_OR_RETURN(Node * node, AddNodeView(Intern(name), op, {}));
  if (position != nullptr) MoveBefore(node, position);
  return node;
}

absl::StatusOr<Node*> Graph::AddConst(absl::string_view name, Tensor value, Node* position) {
  PF_ASSIGN_OR_RETURN(Node * node, AddNode(name, ops::kConst, position));
  node->SetAttr("dtype", AttrValue::Type(value.dtype()));
  node->SetAttr("value", AttrValue::OfTensor(std::move(value)));
  return node;
}

void Graph::AppendAttrView(Node* node, absl::string_view key, AttrValue value) {
  node->attrs_.push_back({key, std::move(value)});
}

void Graph::Reserve(size_t nodes) {
  by_name_.reserve(nodes);
  storage_.Reserve(nodes);
}

void Graph::SetSurroundingsView(absl::string_view library, absl::string_view versions, absl::string_view extra_fields) {
  library_ = library;
  versions_ = versions;
  extra_fields_ = extra_fields;
}

void Graph::Discard(Node* node) {
  if (lineage_ != nullptr) lineage_->OnRemoved(*node);
  by_name_.erase(node->name_);
  Unlink(node);
  // Keeps the slot, so that ids and pointers of other nodes stay valid, but frees the memory that the node owns.
  node->inputs_.clear();
  node->inputs_.shrink_to_fit();
  node->uses_.clear();
  node->uses_.shrink_to_fit();
  node->attrs_.clear();
  node->attrs_.shrink_to_fit();
}

absl::Status Graph::RemoveNode(Node* node) {
  if (!node->uses_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(node->Describe(), " cannot be removed while ", node->uses_[0].consumer->Describe(), " uses it"));
  }
  if (IsEndpoint(node)) {
    return absl::FailedPreconditionError(
        absl::StrCat(node->Describe(), " cannot be removed: it is a declared ", IsOutput(node) ? "output" : "input"));
  }
  ClearInputs(node);
  Discard(node);
  return absl::OkStatus();
}

absl::Status Graph::RemoveNodes(const std::vector<bool>& remove) {
  std::vector<Node*> going;
  for (Node* node = first_; node != nullptr; node = node->next_) {
    if (!remove[node->id_]) continue;
    going.push_back(node);
    if (IsEndpoint(node)) {
      return absl::FailedPreconditionError(
          absl::StrCat(node->Describe(), " cannot be removed: it is a declared ", IsOutput(node) ? "output" : "input"));
    }
    for (const Use& use : node->uses_) {
      if (!remove[use.consumer->id_]) {
        return absl::FailedPreconditionError(
            absl::StrCat(node->Describe(), " cannot be removed while ", use.consumer->Describe(), " uses it"));
      }
    }
  }
  for (Node* node : going) {
    for (uint32_t i = 0; i < node->inputs_.size(); ++i) {
      if (!remove[node->inputs_[i].producer->id_]) DetachUse(node, i);
    }
  }
  for (Node* node : going) Discard(node);
  return absl::OkStatus();
}

absl::Status Graph::Rename(Node* node, absl::string_view name) { return RenameAll({{node, std::string(name)}}); }

absl::Status Graph::RenameAll(const std::vector<std::pair<Node*, std::string>>& names) {
  for (const auto& [node, name] : names) by_name_.erase(node->name_);
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::string_view kept = Intern(names[i].second);
    const bool is_free = !kept.empty() && by_name_.try_emplace(kept, names[i].first).second;
    if (is_free) continue;
    for (size_t done = 0; done < i; ++done) by_name_.erase(names[done].second);
    for (const auto& [node, name] : names) by_name_.emplace(node->name_, node);
    return absl::AlreadyExistsError(
        absl::StrCat(names[i].first->Describe(), " cannot be renamed to '", kept,
                     kept.empty() ? "': a name must not be empty" : "': the name is taken"));
  }
  for (const auto& [node, name] : names) {
    node->name_ = Intern(name);
    if (!IsEndpoint(node)) continue;
    for (auto* endpoints : {&declared_inputs_, &declared_outputs_}) {
      for (Endpoint& endpoint : *endpoints) {
        if (endpoint.node != node) continue;
        const bool has_port = absl::StrContains(endpoint.text, ':');
        endpoint.text = has_port ? absl::StrCat(name, ":", endpoint.port) : name;
      }
    }
  }
  return absl::OkStatus();
}

void Graph::MoveBefore(Node* node, Node* position) {
  if (node == position) return;
  Unlink(node);
  Link(node, position);
}

void Graph::SetOrder(const std::vector<Node*>& order) {
  first_ = last_ = nullptr;
  num_nodes_ = 0;
  for (Node* node : order) Link(node, nullptr);
}

// --- Edges -------------------------------------------------------------------------------------------------------

void Graph::AttachUse(Node* node, uint32_t index) {
  Node::Input& input = node->inputs_[index];
  input.use_index = static_cast<uint32_t>(input.producer->uses_.size());
  input.producer->uses_.push_back({node, index});
}

void Graph::DetachUse(Node* node, uint32_t index) {
  auto& uses = node->inputs_[index].producer->uses_;
  const uint32_t slot = node->inputs_[index].use_index;
  uses[slot] = uses.back();
  uses[slot].consumer->inputs_[uses[slot].index].use_index = slot;
  uses.pop_back();
}

void Graph::AddInput(Node* node, TensorRef input, bool spells_zero) {
  const Node::Input made = {input.node, input.port, spells_zero, 0};
  if (input.is_control() || node->num_data_inputs_ == node->inputs_.size()) {
    node->inputs_.push_back(made);
    if (!input.is_control()) ++node->num_data_inputs_;
    AttachUse(node, static_cast<uint32_t>(node->inputs_.size() - 1));
    return;
  }
  // Moves the control inputs up by one position.
  const uint32_t index = node->num_data_inputs_++;
  node->inputs_.insert(node->inputs_.begin() + index, made);
  for (uint32_t i = index + 1; i < node->inputs_.size(); ++i) {
    node->inputs_[i].producer->uses_[node->inputs_[i].use_index].index = i;
  }
  AttachUse(node, index);
}

void Graph::AddControlInput(Node* node, Node* producer) {
  if (producer == node) return;
  // Both lists can be very long, so the shorter one is searched.
  if (static_cast<size_t>(node->num_inputs() - node->num_data_inputs()) <= producer->uses_.size()) {
    for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) {
      if (node->inputs_[i].producer == producer) return;
    }
  } else {
    for (const Use& use : producer->uses_) {
      if (use.consumer == node && node->inputs_[use.index].port == kControlPort) return;
    }
  }
  AddInput(node, {producer, kControlPort});
}

void Graph::SetInput(Node* node, int index, TensorRef input) {
  DetachUse(node, index);
  node->inputs_[index] = {input.node, input.port, false, 0};
  AttachUse(node, index);
}

void Graph::RemoveInput(Node* node, int index) {
  DetachUse(node, index);
  const bool is_control = index >= node->num_data_inputs();
  if (!is_control) --node->num_data_inputs_;
  if (is_control && node->num_inputs() - node->num_data_inputs() > kMostControlInputsInOrder) {
    Node::Input& last = node->inputs_.back();
    if (&last != &node->inputs_[index]) {
      node->inputs_[index] = last;
      last.producer->uses_[last.use_index].index = static_cast<uint32_t>(index);
    }
    node->inputs_.pop_back();
    return;
  }
  node->inputs_.erase(node->inputs_.begin() + index);
  for (uint32_t i = index; i < node->inputs_.size(); ++i) {
    node->inputs_[i].producer->uses_[node->inputs_[i].use_index].index = i;
  }
}

void Graph::ClearInputs(Node* node) {
  for (uint32_t i = 0; i < node->inputs_.size(); ++i) DetachUse(node, i);
  node->inputs_.clear();
  node->num_data_inputs_ = 0;
}

void Graph::ReplaceUses(TensorRef from, TensorRef to) {
  if (from == to) return;
  if (lineage_ != nullptr) lineage_->OnReplaced(*from.node, *to.node);
  const std::vector<Use> uses(from.node->uses_.begin(), from.node->uses_.end());
  for (const Use& use : uses) {
    if (use.consumer->input(use.index).port == from.port) SetInput(use.consumer, use.index, to);
  }
}

void Graph::ReplaceControlUses(Node* from, Node* to) {
  if (from == to) return;
  if (lineage_ != nullptr) lineage_->OnReplaced(*from, *to);
  // Iterates backwards: RemoveInput moves the last use into the gap, and that use has been visited already.
  for (size_t i = from->uses_.size(); i-- > 0;) {
    const Use use = from->uses_[i];
    if (!use.consumer->input(use.index).is_control()) continue;
    RemoveInput(use.consumer, static_cast<int>(use.index));
    AddControlInput(use.consumer, to);
  }
}

std::vector<Use> Graph::UsesOf(TensorRef ref) const {
  std::vector<Use> uses;
  for (const Use& use : ref.node->uses_) {
    if (use.consumer->input(use.index).port == ref.port) uses.push_back(use);
  }
  absl::c_sort(uses, [](const Use& a, const Use& b) {
    return std::make_pair(a.consumer->id(), a.index) < std::make_pair(b.consumer->id(), b.index);
  });
  return uses;
}

bool Graph::HasDataUses(TensorRef ref) const {
  return std::any_of(ref.node->uses_.begin(), ref.node->uses_.end(),
                     [&](const Use& use) { return use.consumer->input(use.index).port == ref.port; });
}

// --- Lineage -----------------------------------------------------------------------------------------------------

void Graph::RecordLineage() { lineage_ = std::make_unique<Lineage>(*this); }

void Graph::AddOrigins(const Node* to, const Node* from) {
  if (lineage_ != nullptr && to != from) lineage_->Add(*to, lineage_->SetOf(*from));
}

// --- Interface ---------------------------------------------------------------------------------------------------

bool Graph::IsInput(const Node* node) const { return input_nodes_.contains(node); }
bool Graph::IsOutput(const Node* node) const { return output_nodes_.contains(node); }

absl::Status Graph::DeclareInterface(absl::Span<const std::string> inputs, absl::Span<const std::string> outputs) {
  const auto resolve = [&](const std::string& text, absl::string_view role, bool must_exist,
                           Endpoint* endpoint) -> absl::Status {
    endpoint->text = text;
    absl::string_view name = text;
    if (const size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
      if (!absl::SimpleAtoi(name.substr(colon + 1), &endpoint->port) || endpoint->port < 0) {
        return absl::InvalidArgumentError(absl::StrCat(role, " '", text, "': found '", name.substr(colon + 1),
                                                       "' after the colon, expected an output number"));
      }
      name = name.substr(0, colon);
    }
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("an ", role, " has an empty name"));
    endpoint->node = Find(name);
    if (endpoint->node == nullptr && must_exist) {
      std::vector<absl::string_view> names;
      for (const Node* node = first_; node != nullptr; node = node->next_) names.push_back(node->name_);
      return absl::InvalidArgumentError(
          absl::StrCat(role, " '", text, "' is not a node of the graph", DidYouMean(name, names)));
    }
    return absl::OkStatus();
  };
  std::vector<Endpoint> new_inputs(inputs.size()), new_outputs(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    PF_RETURN_IF_ERROR(resolve(inputs[i], "input", /*must_exist=*/false, &new_inputs[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    PF_RETURN_IF_ERROR(resolve(outputs[i], "output", /*must_exist=*/true, &new_outputs[i]));
  }
  declared_inputs_ = std::move(new_inputs);
  declared_outputs_ = std::move(new_outputs);
  input_nodes_.clear();
  output_nodes_.clear();
  for (const Endpoint& endpoint : declared_inputs_) {
    if (endpoint.node != nullptr) input_nodes_.insert(endpoint.node);
  }
  for (const Endpoint& endpoint : declared_outputs_) output_nodes_.insert(endpoint.node);
  return absl::OkStatus();
}

// --- Attributes by kind ------------------------------------------------------------------------------------------

namespace {

// Returns the attribute, or its default in the schema, or null if there is neither.
const AttrValue* AttrOrDefault(const Node& node, absl::string_view key) {
  const AttrValue* value = node.FindAttr(key);
#ifndef PERMAFROST_PROGRAM_FILES  // The steps of a program file have all attributes, so that it needs no schemas.
  if (value == nullptr) value = DefaultAttr(node.op(), key);
#endif
  return value;
}

// Returns the error for an attribute that is missing or does not decode.
absl::Status AttrError(const Node& node, absl::string_view key, const AttrValue* value, const absl::Status& status) {
  const std::string place = absl::StrCat(node.Describe(), ": attr '", key, "'");
  return value == nullptr ? absl::NotFoundError(absl::StrCat(place, " is missing")) : Annotate(status, place);
}

// Decodes the attribute or its default in the schema. Errors name the node and the attribute.
template <typename T, typename Decode>
absl::StatusOr<T> DecodeAttr(const Node& node, absl::string_view key, Decode decode) {
  const AttrValue* value = AttrOrDefault(node, key);
  if (value == nullptr) return AttrError(node, key, value, absl::OkStatus());
  auto decoded = decode(*value);
  if (!decoded.ok()) return AttrError(node, key, value, decoded.status());
  return T(*std::move(decoded));
}

}  // namespace

absl::StatusOr<int64_t> IntAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<int64_t>(node, key, [](const AttrValue& value) { return value.AsInt(); });
}
absl::StatusOr<float> FloatAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<float>(node, key, [](const AttrValue& value) { return value.AsFloat(); });
}
absl::StatusOr<bool> BoolAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<bool>(node, key, [](const AttrValue& value) { return value.AsBool(); });
}
absl::StatusOr<std::string> StringAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<std::string>(node, key, [](const AttrValue& value) { return value.AsString(); });
}
absl::StatusOr<DType> TypeAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<DType>(node, key, [](const AttrValue& value) { return value.AsType(); });
}
absl::StatusOr<Shape> ShapeAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<Shape>(node, key, [](const AttrValue& value) { return value.AsShape(); });
}
absl::StatusOr<std::vector<int64_t>> IntListAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<std::vector<int64_t>>(node, key, [](const AttrValue& value) { return value.AsIntList(); });
}
absl::StatusOr<std::vector<float>> FloatListAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<std::vector<float>>(node, key, [](const AttrValue& value) { return value.AsFloatList(); });
}
absl::StatusOr<std::vector<DType>> TypeListAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<std::vector<DType>>(node, key, [](const AttrValue& value) { return value.AsTypeList(); });
}
absl::StatusOr<std::vector<std::string>> StringListAttr(const Node& node, absl::string_view key) {
  return DecodeAttr<std::vector<std::string>>(node, key, [](const AttrValue& value) { return value.AsStringList(); });
}

absl::StatusOr<Tensor> ConstValue(const Node& node) {
  if (node.op() != ops::kConst) {
    return absl::FailedPreconditionError(absl::StrCat(node.Describe(), " is not a Const, expected a constant"));
  }
  return DecodeAttr<Tensor>(node, "value", [](const AttrValue& value) { return value.AsTensor(); });
}

}  // namespace permafrost
