// Copies nodes from graph to graph.
#include "transforms/rewrites/body_copy.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

class Copier {
 public:
  Copier(const Graph& body, absl::string_view prefix, absl::Span<const TensorRef> args, Graph* graph)
      : body_(body),
        prefix_(prefix),
        args_(args),
        graph_(graph),
        twins_(body.id_limit(), nullptr),
        indexes_(body.id_limit(), 0) {
    for (size_t i = 0; i < body.inputs().size(); ++i) indexes_[body.inputs()[i].node->id()] = i;
  }

  absl::StatusOr<BodyCopy> Copy(Node* gate, Gating gating, CopyBudget* budget, Node* position) {
    gate_ = gate;
    for (const Node* node = body_.first(); node != nullptr; node = node->next()) {
      if (node->op() == ops::k_Retval || node->op() == ops::k_Arg) continue;
      PF_RETURN_IF_ERROR(AddTwin(*node, budget, position));
    }
    for (const Node* node = body_.first(); node != nullptr; node = node->next()) {
      Node* twin = twins_[node->id()];
      if (twin == nullptr) continue;
      for (int i = 0; i < node->num_data_inputs(); ++i) {
        const TensorRef to = Now(node->input(i));
        graph_->AddInput(twin, to, to.node == twins_[node->input(i).node->id()] && node->input_spells_zero(i));
      }
      AddControls(*node, gate != nullptr && Waits(*node, gating) ? gate : nullptr, twin);
      if (const AttrValue* attr = node->FindAttr(kColocationAttr); attr != nullptr) Colocate(*attr, twin);
    }
    BodyCopy copy;
    for (const Node* node = body_.first(); node != nullptr; node = node->next()) {
      if (twins_[node->id()] != nullptr) copy.nodes.push_back(twins_[node->id()]);
    }
    for (const Endpoint& output : body_.outputs()) {
      if (output.node->op() == ops::k_Retval) {
        copy.outputs.push_back(Now(output.node->input(0)));
      } else {
        copy.control_outputs.push_back(Now({output.node, kControlPort}).node);
      }
    }
    return copy;
  }

 private:
  absl::Status AddTwin(const Node& node, CopyBudget* budget, Node* position) {
    std::string name = graph_->UniqueName(absl::StrCat(prefix_, node.name()));
    budget->name_bytes -= static_cast<int64_t>(name.size());
    if (--budget->nodes < 0 || budget->name_bytes < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(node.Describe(),
                       ": the bodies of functions, each in the place of every call, add up to too "
                       "large a graph"));
    }
    PF_ASSIGN_OR_RETURN(Node * twin, graph_->AddNode(name, node.op(), position));
    twin->set_device(node.device());
    twin->set_extra_fields(node.extra_fields());
    twin->CopyAttrs(node);
    twins_[node.id()] = twin;
    if (node.op() == ops::kEnter || node.op() == ops::kRefEnter) {
      if (const absl::StatusOr<std::string> frame = StringAttr(node, "frame_name"); frame.ok()) {
        twin->SetAttr("frame_name", AttrValue::String(absl::StrCat(prefix_, *frame)));
      }
    }
    return absl::OkStatus();
  }

  // At this point names are still those of the body.
  void Colocate(const AttrValue& attr, Node* twin) {
    constexpr absl::string_view kPrefix = "loc:@";
    const absl::StatusOr<std::vector<std::string>> entries = attr.AsStringList();
    if (!entries.ok()) return;
    std::vector<std::string> kept;
    for (const std::string& entry : *entries) {
      absl::string_view name = entry;
      if (!absl::ConsumePrefix(&name, kPrefix)) {
        kept.push_back(entry);
        continue;
      }
      const Node* target = body_.Find(name);
      if (target == nullptr || twins_[target->id()] == nullptr) continue;
      kept.push_back(absl::StrCat(kPrefix, twins_[target->id()]->name()));
    }
    if (kept.empty()) {
      twin->RemoveAttr(kColocationAttr);
    } else {
      twin->SetAttr(kColocationAttr, AttrValue::StringList(kept));
    }
  }

  TensorRef Now(TensorRef ref) const {
    if (ref.node->op() != ops::k_Arg) return {twins_[ref.node->id()], ref.port};
    const TensorRef arg = args_[indexes_[ref.node->id()]];
    if (!ref.is_control()) return arg;
    return {arg.node->op() == ops::kSwitch && gate_ != nullptr ? gate_ : arg.node, kControlPort};
  }

  // Several arguments may have the same producer, which becomes a control input only once.
  void AddControls(const Node& node, Node* gate, Node* twin) {
    absl::flat_hash_set<const Node*> waited_for = {twin};
    for (int i = 0; gate != nullptr && i < twin->num_data_inputs(); ++i) {
      if (twin->input(i).node == gate) gate = nullptr;  // The gate is already a data input.
    }
    for (int i = node.num_data_inputs(); i < node.num_inputs(); ++i) {
      Node* producer = Now(node.input(i)).node;
      if (waited_for.insert(producer).second) graph_->AddInput(twin, {producer, kControlPort});
    }
    if (gate != nullptr && waited_for.insert(gate).second) graph_->AddInput(twin, {gate, kControlPort});
  }

  static bool IsConstant(const Node& node) { return node.op() == ops::kConst && node.num_inputs() == 0; }

  static bool Waits(const Node& node, Gating gating) {
    if (node.num_inputs() == 0 && gating != Gating::kStarts) return true;
    if (IsConstant(node) || gating == Gating::kInputless) return false;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node& producer = *node.input(i).node;
      if (producer.op() != ops::k_Arg && !IsConstant(producer)) return false;
    }
    return true;
  }

  const Graph& body_;
  absl::string_view prefix_;
  absl::Span<const TensorRef> args_;
  Graph* graph_;
  Node* gate_ = nullptr;
  std::vector<Node*> twins_;     // By id in the body; null for arguments and outputs.
  std::vector<size_t> indexes_;  // By id in the body: argument index.
};

}  // namespace

absl::StatusOr<BodyCopy> CopyBody(const Graph& body, absl::string_view prefix, absl::Span<const TensorRef> args,
                                  Node* gate, Gating gating, CopyBudget* budget, Graph* graph, Node* position) {
  return Copier(body, prefix, args, graph).Copy(gate, gating, budget, position);
}

bool HasEffect(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  if (schema == nullptr) return true;
  if (schema->Is(kHasSideEffect)) return true;
  if (!schema->Is(kStateful) || schema->Is(kRandom)) return false;
  for (const Op op : {ops::kNoOp, ops::k_Arg, ops::k_Retval, ops::kPlaceholder, ops::kPlaceholderV2, ops::kVarHandleOp,
                      ops::kReadVariableOp, ops::kVariable, ops::kVariableV2}) {
    if (node.op() == op) return false;
  }
  return true;
}

}  // namespace permafrost
