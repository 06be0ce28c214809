// Converts TensorArrayV3 and its ops to V2, for runtimes that do not support V3.
#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/ops/op_schema.h"
#include "transforms/pass.h"

namespace permafrost {
namespace {

struct Twin {
  Op v3;
  Op v2;
};
constexpr Twin kTwins[] = {
    {ops::kTensorArrayV3, ops::kTensorArrayV2},
    {ops::kTensorArrayGradV3, ops::kTensorArrayGradV2},
    {ops::kTensorArrayWriteV3, ops::kTensorArrayWriteV2},
    {ops::kTensorArrayReadV3, ops::kTensorArrayReadV2},
    {ops::kTensorArrayGatherV3, ops::kTensorArrayGatherV2},
    {ops::kTensorArrayScatterV3, ops::kTensorArrayScatterV2},
    {ops::kTensorArrayConcatV3, ops::kTensorArrayConcatV2},
    {ops::kTensorArraySplitV3, ops::kTensorArraySplitV2},
    {ops::kTensorArraySizeV3, ops::kTensorArraySizeV2},
    {ops::kTensorArrayCloseV3, ops::kTensorArrayCloseV2},
};

// Returns null for any other op.
const Twin* FindTwin(Op op) {
  const auto* found = std::find_if(std::begin(kTwins), std::end(kTwins), [&](const Twin& t) { return t.v3 == op; });
  return found == std::end(kTwins) ? nullptr : found;
}

// Returns true for ops with a handle as output 0 and a flow as output 1. The V2 ops lack the flow.
bool MakesHandle(Op op) { return op == ops::kTensorArrayV3 || op == ops::kTensorArrayGradV3; }
constexpr int kFlowPort = 1;

// Follows handles through the nodes that pass them on. The attributes of these nodes declare resources, while V2
// handles are strings.
class HandleTypes {
 public:
  // Checks that every node reached by a handle supports strings. Returns FailedPrecondition with one that does not.
  absl::Status Follow(const Graph& graph) {
    parent_.resize(graph.id_limit());
    std::iota(parent_.begin(), parent_.end(), 0);
    for (Node* node = graph.first(); node != nullptr; node = node->next()) {
      if (MakesHandle(node->op())) AddHandle({node, 0});
    }
    while (!waiting_.empty()) {
      const TensorRef handle = waiting_.back();
      waiting_.pop_back();
      for (const Use& use : UsesOf(handle)) {
        PF_RETURN_IF_ERROR(FollowInto(use.consumer, use.index));
        parent_[FamilyOf(*use.consumer)] = FamilyOf(*handle.node);
      }
    }
    for (const auto& [node, attrs] : retyped_) {
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        const Slot& slot = slots_.at(node).inputs[i];
        if (slot.arg == nullptr || slot.arg->is_type_list || handles_.contains(node->input(i))) continue;
        if (std::find(attrs.begin(), attrs.end(), slot.arg->type_attr) == attrs.end()) continue;
        return absl::FailedPreconditionError(absl::StrCat(node->Describe(),
                                                          ": passes on the handle of a TensorArrayV3 ", "or '",
                                                          node->input(i).ToString(), "', which is not a handle"));
      }
    }
    return absl::OkStatus();
  }

  // Returns a number shared by all nodes that one handle reaches: they change together or not at all.
  uint32_t FamilyOf(const Node& node) {
    uint32_t id = node.id();
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  // Changes the types in the given families to string, and returns the number of changed nodes.
  absl::StatusOr<int64_t> Retype(const absl::flat_hash_set<uint32_t>& families) {
    int64_t retyped = 0;
    for (const auto& [node, attrs] : retyped_) {
      if (!families.contains(FamilyOf(*node))) continue;
      ++retyped;
      for (const std::string& attr : attrs) node->SetAttr(attr, AttrValue::Type(DType::kString));
    }
    for (const auto& [node, places] : retyped_in_list_) {
      if (!families.contains(FamilyOf(*node))) continue;
      ++retyped;
      PF_ASSIGN_OR_RETURN(std::vector<DType> types, TypeListAttr(*node, "T"));
      for (const size_t place : places) types[place] = DType::kString;
      node->SetAttr("T", AttrValue::TypeList(types));
    }
    return retyped;
  }

 private:
  // Schema entry of an input or output of a node.
  struct Slot {
    const ArgSpec* arg = nullptr;
    size_t place = 0;  // Index in the list of types, for a list.
  };
  struct Slots {
    std::vector<Slot> inputs, outputs;
  };

  void AddHandle(TensorRef handle) {
    if (handles_.insert(handle).second) waiting_.push_back(handle);
  }

  // Returns the data uses of one output. Uses of a node are sorted by output once.
  const std::vector<Use>& UsesOf(TensorRef ref) {
    const auto [uses, is_new] = uses_.try_emplace(ref.node);
    if (is_new) {
      for (const Use& use : ref.node->uses()) {
        const int port = use.consumer->input(use.index).port;
        if (port != kControlPort) uses->second[port].push_back(use);
      }
    }
    return uses->second[ref.port];
  }

  static absl::StatusOr<std::vector<Slot>> SlotsOf(const Node& node, const std::vector<ArgSpec>& args) {
    std::vector<Slot> slots;
    for (const ArgSpec& arg : args) {
      size_t count = 1;
      if (arg.is_type_list) {
        PF_ASSIGN_OR_RETURN(const std::vector<DType> types, TypeListAttr(node, arg.type_attr));
        count = types.size();
      } else if (!arg.number_attr.empty()) {
        PF_ASSIGN_OR_RETURN(const int64_t number, IntAttr(node, arg.number_attr));
        count = static_cast<size_t>(std::clamp<int64_t>(number, 0, node.num_data_inputs()));
      }
      for (size_t i = 0; i < count; ++i) slots.push_back({&arg, i});
    }
    return slots;
  }

  absl::Status FollowInto(Node* node, uint32_t index) {
    if (FindTwin(node->op()) != nullptr && index == 0) return absl::OkStatus();
    const OpSchema* schema = FindSchema(node->op());
    if (schema == nullptr) return Refuse(*node, "of which nothing is known");
    const auto [entry, is_new] = slots_.try_emplace(node);
    Slots& slots = entry->second;
    if (is_new) {
      PF_ASSIGN_OR_RETURN(slots.inputs, SlotsOf(*node, schema->inputs));
      PF_ASSIGN_OR_RETURN(slots.outputs, SlotsOf(*node, schema->outputs));
      slots.inputs.resize(std::max<size_t>(slots.inputs.size(), node->num_data_inputs()));
    }
    const Slot slot = slots.inputs[index];
    if (slot.arg == nullptr || slot.arg->type_attr.empty())
      return Refuse(*node, "which does not accept a string instead");
    if (slot.arg->is_type_list) {
      if (node->op() != ops::kIdentityN) return Refuse(*node, "which may call a function; inline it first");
      retyped_in_list_[node].push_back(slot.place);
      AddHandle({node, static_cast<int>(slot.place)});
      return absl::OkStatus();
    }
    std::vector<std::string>& attrs = retyped_[node];
    if (std::find(attrs.begin(), attrs.end(), slot.arg->type_attr) != attrs.end()) return absl::OkStatus();
    attrs.push_back(slot.arg->type_attr);
    for (size_t port = 0; port < slots.outputs.size(); ++port) {
      const ArgSpec& output = *slots.outputs[port].arg;
      if (!output.is_type_list && output.type_attr == slot.arg->type_attr) AddHandle({node, static_cast<int>(port)});
    }
    return absl::OkStatus();
  }

  static absl::Status Refuse(const Node& node, absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("the handle of a TensorArrayV3, a resource, is passed to ", node.Describe(), ", ", why));
  }

  absl::flat_hash_set<TensorRef> handles_;
  std::vector<TensorRef> waiting_;
  absl::flat_hash_map<Node*, absl::flat_hash_map<int, std::vector<Use>>> uses_;
  absl::flat_hash_map<Node*, Slots> slots_;
  absl::flat_hash_map<Node*, std::vector<std::string>> retyped_;
  absl::flat_hash_map<Node*, std::vector<size_t>> retyped_in_list_;
  std::vector<uint32_t> parent_;  // By node id: parent towards the representative of the family.
};

// Returns FailedPrecondition if a flow is declared as input or output: V2 has no tensor to replace it under its name.
absl::Status CheckEndpoints(const Graph& graph) {
  for (const auto* endpoints : {&graph.inputs(), &graph.outputs()}) {
    for (const Endpoint& endpoint : *endpoints) {
      if (endpoint.node == nullptr || !MakesHandle(endpoint.node->op()) || endpoint.port != kFlowPort) continue;
      return absl::FailedPreconditionError(absl::StrCat("'", endpoint.text, "' is declared, and the flow of ",
                                                        endpoint.node->Describe(),
                                                        " does not exist in V2; declare its reader instead"));
    }
  }
  return absl::OkStatus();
}

// Replaces the flow by a constant that waits for the node, as the readers of the flow did.
absl::Status ReplaceFlow(Graph* graph, Node* node) {
  if (!graph->HasDataUses({node, kFlowPort})) return absl::OkStatus();
  const OriginScope origins(graph, {node});
  PF_ASSIGN_OR_RETURN(Node * flow,
                      graph->AddConst(graph->UniqueName(absl::StrCat(node->name(), "/replacement_flow_node")),
                                      Tensor::Scalar<float>(1.0f), node->next()));
  flow->set_device(node->device());
  graph->ReplaceUses({node, kFlowPort}, {flow, 0});
  graph->AddControlInput(flow, node);
  return absl::OkStatus();
}

// Removes attributes that the op does not have; TensorFlow does not load nodes with such attributes.
void RemoveUnknownAttrs(Node* node) {
  const OpSchema* schema = FindSchema(node->op());
  std::vector<std::string> unknown;
  for (const Attr& attr : node->attrs()) {
    if (!absl::StartsWith(attr.key, "_") && schema->FindAttr(attr.key) == nullptr) unknown.emplace_back(attr.key);
  }
  for (const std::string& key : unknown) node->RemoveAttr(key);
}

// Returns the version of the runtime that produced the graph, or 0 if the graph has none.
uint64_t ProducerOf(const Graph& graph) {
  uint64_t producer = 0;
  WireReader reader(graph.versions());
  WireField versions;
  while (reader.Next(&versions)) {
    if (versions.type != WireType::kLengthDelimited) continue;
    WireReader inner(versions.bytes);
    WireField field;
    while (inner.Next(&field)) {
      if (field.number == 1 && field.type == WireType::kVarint) producer = field.value;  // VersionDef.producer.
    }
  }
  return producer;
}

absl::StatusOr<int64_t> Backport(Graph* graph, const NoParams&, PassContext* context) {
  PF_RETURN_IF_ERROR(CheckEndpoints(*graph));
  HandleTypes types;
  PF_RETURN_IF_ERROR(types.Follow(*graph));
  std::vector<Node*> nodes;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (FindTwin(node->op()) != nullptr) nodes.push_back(node);
  }
  if (nodes.empty()) {
    context->NoteAbsent("no node has an op of TensorArrayV3");
    return 0;
  }
  // One rewrite for each family: an array and its ops have the same version.
  absl::flat_hash_set<uint32_t> seen, families;
  for (const Node* node : nodes) {
    const uint32_t family = types.FamilyOf(*node);
    if (seen.insert(family).second && context->AllowRewrite(*node)) families.insert(family);
  }
  PF_ASSIGN_OR_RETURN(const int64_t retyped, types.Retype(families));
  int64_t converted = 0;
  for (Node* node : nodes) {
    if (!families.contains(types.FamilyOf(*node))) continue;
    ++converted;
    const Twin* twin = FindTwin(node->op());
    if (MakesHandle(node->op())) PF_RETURN_IF_ERROR(ReplaceFlow(graph, node));
    node->set_op(twin->v2);
    RemoveUnknownAttrs(node);
  }
  context->Note(absl::StrCat("turned ", converted, " nodes into those of V2; ", retyped, " pass on their handles"));
  // Op registry of TensorFlow 2.21: TensorArrayV2 "has been removed in version 26".
  constexpr uint64_t kRefusedFrom = 26;
  if (const uint64_t producer = ProducerOf(*graph); producer >= kRefusedFrom) {
    context->Note(absl::StrCat("the graph's producer is ", producer, ": TensorFlow refuses TensorArrayV2 in graphs of ",
                               kRefusedFrom, " and above; runtimes without TensorArrayV3 accept it"));
  }
  return converted + retyped;
}

}  // namespace

// Replaces TensorArrayV3 and the ops that use it by their V2 forms. TensorArrayV2 has no flow output: readers of the
// flow get a constant with a control dependency on the node. Handles become strings instead of resources, and the types
// of all nodes that pass on a handle are updated.
//
//   TensorArrayWriteV3(TensorArrayV3 a, i, x, a:1)
//     =>   TensorArrayWriteV2(TensorArrayV2 a, i, x, Const a/replacement_flow_node(^a))
//
// Attributes that V2 lacks, such as identical_element_shapes, are removed. It is an error if a handle is passed to a
// function or an unknown op, or if the flow is a declared output.
DEFINE_PASS(backport_tensor_array_v3) {
  return Pass<NoParams>(
             "Replaces TensorArrayV3 and its ops by their V2 forms, for runtimes that support only the older ops.")
      .Why("A model trained with a newer TensorFlow then runs on a runtime with only the older ops.")
      .Numerics(Exact())
      .Idempotent()
      .ChangesInterface("a declared handle becomes a string instead of a resource")
      .Run(Backport);
}

}  // namespace permafrost
