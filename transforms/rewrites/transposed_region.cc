// Regions of a graph that do not depend on the order of dimensions.
#include "transforms/rewrites/transposed_region.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/elementwise_ops.h"
#include "transforms/rewrites/layout_ops.h"

namespace permafrost {
namespace {

bool IsReduction(Op op) {
  return op == ops::kMean || op == ops::kSum || op == ops::kMax || op == ops::kMin || op == ops::kProd;
}
bool IsPad(Op op) { return op == ops::kPad || op == ops::kPadV2 || op == ops::kMirrorPad; }

// Returns the input that selects dimensions, for ops that have one; else -1.
int ParameterInput(const Node& node) {
  if (node.op() == ops::kConcatV2) return node.num_data_inputs() - 1;
  if (const LayoutOperands* operands = FindLayoutOperands(node.op()); operands != nullptr) return operands->parameter;
  return IsPad(node.op()) || IsReduction(node.op()) ? 1 : -1;
}

// Returns the tensor of a parameter after the change; nothing if it is not a constant that can be permuted.
absl::StatusOr<Tensor> ChangedParameter(const Node& node, const Permutation& order) {
  const Node* constant = ConstantBehind(node.input(ParameterInput(node)));
  if (constant == nullptr) return absl::FailedPreconditionError("is not constant");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> old, IntegerValues(value));
  const int64_t rank = static_cast<int64_t>(order.size());
  std::vector<int64_t> changed = old;
  if (FindLayoutOperands(node.op()) != nullptr) {
    if (value.shape() != Shape({rank})) return absl::FailedPreconditionError("has another rank");
    for (int64_t i = 0; i < rank; ++i) changed[order[i]] = old[i];
  } else if (IsPad(node.op())) {
    if (value.shape() != Shape({rank, 2})) return absl::FailedPreconditionError("has another rank");
    for (int64_t i = 0; i < rank; ++i) {
      changed[2 * order[i]] = old[2 * i];
      changed[2 * order[i] + 1] = old[2 * i + 1];
    }
  } else {
    for (int64_t& axis : changed) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return absl::FailedPreconditionError("is out of range");
      axis = order[axis];
    }
  }
  if (value.dtype() == DType::kInt64) return Tensor::FromVector(value.shape(), std::move(changed));
  return Tensor::FromVector(value.shape(), std::vector<int32_t>(changed.begin(), changed.end()));
}

int RankOf(const ShapeMap& shapes, TensorRef ref) {
  const Shape shape = shapes.Of(ref);
  return shape.has_rank() ? shape.rank() : -1;
}

Permutation Ascending(int rank) {
  Permutation order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

}  // namespace

absl::Status MayChangeParameter(const Node& node, int rank) {
  const int parameter = ParameterInput(node);
  if (parameter < 0) return absl::OkStatus();
  return Annotate(ChangedParameter(node, Ascending(rank)).status(), absl::StrCat("input ", parameter));
}

bool MayChangeOrder(const Node& node, int rank, const Graph& graph, const ShapeMap& shapes) {
  if (FindLayoutOperands(node.op()) != nullptr) return false;
  const int parameter = ParameterInput(node);
  if (!IsUnaryElementwise(node.op()) && !IsBinaryElementwise(node.op()) && node.op() != ops::kAddN && parameter < 0) {
    return false;
  }
  if (graph.IsEndpoint(&node) || node.num_data_inputs() == 0 || parameter >= node.num_data_inputs()) return false;
  if (RankOf(shapes, {const_cast<Node*>(&node), 0}) != rank) return false;
  if (IsReduction(node.op()) && !BoolAttr(node, "keep_dims").value_or(false)) return false;
  if (!MayChangeParameter(node, rank).ok()) return false;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    if (i == parameter) continue;
    const int input_rank = RankOf(shapes, node.input(i));
    const bool may_broadcast = IsBinaryElementwise(node.op()) || node.op() == ops::kPadV2;
    if (input_rank == rank || (input_rank == 0 && may_broadcast)) continue;
    if (input_rank < 0 || !may_broadcast || ConstantBehind(node.input(i)) == nullptr) return false;
  }
  return true;
}

TransposedRegion::TransposedRegion(Graph* graph, const ShapeMap& shapes, Node* seed, Permutation order)
    : graph_(graph), shapes_(shapes), order_(std::move(order)), inverse_(Inverse(order_)) {
  const int rank = static_cast<int>(order_.size());
  nodes_.push_back(seed);
  member_.insert(seed);
  const auto visit = [&](Node* node) {
    if (Contains(node) || !MayChangeOrder(*node, rank, *graph_, shapes_)) return;
    nodes_.push_back(node);
    member_.insert(node);
  };
  for (size_t next = 0; next < nodes_.size(); ++next) {
    Node* node = nodes_[next];
    const int parameter = ParameterInput(*node);
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      // A constant is permuted by itself, together with the Identity nodes that it is read through.
      if (i != parameter && ConstantBehind(node->input(i)) == nullptr) visit(node->input(i).node);
    }
    for (const Use& use : node->uses()) {
      const int parameter_of_user = ParameterInput(*use.consumer);
      if (!use.consumer->input(use.index).is_control() && static_cast<int>(use.index) != parameter_of_user) {
        visit(use.consumer);
      }
    }
  }
}

TransposedRegion::TransposedRegion(Graph* graph, const ShapeMap& shapes, std::vector<Node*> nodes, Permutation order,
                                   absl::string_view format)
    : graph_(graph),
      shapes_(shapes),
      order_(std::move(order)),
      inverse_(Inverse(order_)),
      format_(format),
      nodes_(std::move(nodes)),
      member_(nodes_.begin(), nodes_.end()) {}

TransposedRegion::InputKind TransposedRegion::KindOf(const Node& node, int i) const {
  const TensorRef input = node.input(i);
  if (i == ParameterInput(node)) return InputKind::kParameter;
  const LayoutOperands* operands = FindLayoutOperands(node.op());
  if (operands != nullptr && i != operands->image) return InputKind::kOther;
  if (operands != nullptr && Contains(input.node) && input.port == 0) return InputKind::kMember;
  if (Contains(input.node)) return InputKind::kMember;
  if (RankOf(shapes_, input) == 0) return InputKind::kScalar;
  if (ConstantBehind(input) != nullptr) return InputKind::kConstant;
  return OrderOf(*input.node) == order_ ? InputKind::kTransposed : InputKind::kOutside;
}

bool TransposedRegion::IsInverse(const Node& transpose) const {
  return !graph_->IsEndpoint(&transpose) && transpose.num_inputs() == 2 && OrderOf(transpose) == inverse_;
}

bool TransposedRegion::IsUnread(const Node& transpose) const {
  return transpose.op() == ops::kTranspose && transpose.uses().empty() && !graph_->IsEndpoint(&transpose);
}

int64_t TransposedRegion::Gain() const {
  int64_t gain = 0;
  absl::flat_hash_map<const Node*, size_t> transposed;  // Number of uses within the region.
  absl::flat_hash_set<TensorRef> outside;
  for (const Node* node : nodes_) {
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const InputKind kind = KindOf(*node, i);
      if (kind == InputKind::kTransposed) ++transposed[node->input(i).node];
      if (kind == InputKind::kOutside && outside.insert(node->input(i)).second) --gain;
    }
    bool has_other_uses = false;
    for (const Use& use : node->uses()) {
      if (use.consumer->input(use.index).is_control() || Contains(use.consumer)) continue;
      if (IsUnread(*use.consumer)) continue;
      if (IsInverse(*use.consumer) && use.index == 0) {
        ++gain;
      } else {
        has_other_uses = true;
      }
    }
    if (has_other_uses) --gain;
  }
  for (const auto& [node, uses] : transposed) {
    if (uses == node->uses().size() && !graph_->IsEndpoint(node)) ++gain;
  }
  return gain;
}

absl::StatusOr<Node*> TransposedRegion::AddTranspose(TensorRef input, const Permutation& order, Node* position) {
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*input.node));
  if (input.port >= static_cast<int>(types.size())) {
    return absl::InvalidArgumentError(absl::StrCat(input.node->Describe(), " has no output ", input.port));
  }
  const std::string name = graph_->UniqueName(absl::StrCat(input.node->name(), "/transpose"));
  PF_ASSIGN_OR_RETURN(
      Node * constant,
      graph_->AddConst(absl::StrCat(name, "/perm"),
                       Tensor::FromVector(Shape({static_cast<int64_t>(order.size())}), order), position));
  PF_ASSIGN_OR_RETURN(Node * transpose, graph_->AddNode(name, ops::kTranspose, position));
  transpose->set_device(input.node->device());
  graph_->AddInput(transpose, input);
  graph_->AddInput(transpose, {constant, 0});
  transpose->SetAttr("T", AttrValue::Type(types[input.port]));
  transpose->SetAttr("Tperm", AttrValue::Type(DType::kInt32));
  return transpose;
}

absl::StatusOr<TensorRef> TransposedRegion::Untransposed(TensorRef outside, Node* position) {
  const auto [entry, is_new] = untransposed_.try_emplace(outside, TensorRef());
  if (is_new) {
    PF_ASSIGN_OR_RETURN(Node * transpose, AddTranspose(outside, inverse_, position));
    entry->second = {transpose, 0};
  }
  return entry->second;
}

absl::Status TransposedRegion::ChangeParameter(Node* node) {
  const int i = ParameterInput(*node);
  PF_ASSIGN_OR_RETURN(Tensor changed, ChangedParameter(*node, order_));
  PF_ASSIGN_OR_RETURN(Node * constant, graph_->AddConst(graph_->UniqueName(absl::StrCat(node->name(), "/dims")),
                                                        std::move(changed), node));
  graph_->SetInput(node, i, {constant, 0});
  return absl::OkStatus();
}

absl::Status TransposedRegion::ChangeInputs(Node* node) {
  for (int i = 0; i < node->num_data_inputs(); ++i) {
    switch (KindOf(*node, i)) {
      case InputKind::kMember:
      case InputKind::kOther:
      case InputKind::kScalar:
        break;
      case InputKind::kTransposed: {
        Node* transpose = node->input(i).node;
        graph_->SetInput(node, i, transpose->input(0));
        for (int c = 2; c < transpose->num_inputs(); ++c) graph_->AddControlInput(node, transpose->input(c).node);
        break;
      }
      case InputKind::kConstant: {
        PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*ConstantBehind(node->input(i))));
        Shape shape = value.shape();
        while (shape.rank() < static_cast<int>(order_.size())) {
          std::vector<int64_t> dims = {1};
          dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
          shape = Shape(dims);
        }
        PF_ASSIGN_OR_RETURN(const Tensor reshaped, value.Reshaped(shape));
        PF_ASSIGN_OR_RETURN(Tensor changed, Transposed(reshaped, inverse_));
        const std::string name = graph_->UniqueName(absl::StrCat(node->input(i).node->name(), "/transposed"));
        PF_ASSIGN_OR_RETURN(Node * constant, graph_->AddConst(name, std::move(changed), node));
        graph_->SetInput(node, i, {constant, 0});
        break;
      }
      case InputKind::kParameter:
        PF_RETURN_IF_ERROR(ChangeParameter(node));
        break;
      case InputKind::kOutside: {
        PF_ASSIGN_OR_RETURN(const TensorRef ref, Untransposed(node->input(i), node));
        graph_->SetInput(node, i, ref);
        break;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TransposedRegion::ChangeUses(Node* node) {
  TensorRef transposed;
  for (const Use& use : graph_->UsesOf({node, 0})) {
    const LayoutOperands* operands = FindLayoutOperands(use.consumer->op());
    const bool is_image = operands == nullptr || static_cast<int>(use.index) == operands->image;
    if ((Contains(use.consumer) && is_image) || IsUnread(*use.consumer)) continue;
    if (IsInverse(*use.consumer) && use.index == 0) {
      graph_->ReplaceUses({use.consumer, 0}, {node, 0});
      graph_->ReplaceControlUses(use.consumer, node);
      continue;
    }
    if (transposed.node == nullptr) {
      PF_ASSIGN_OR_RETURN(Node * transpose, AddTranspose({node, 0}, order_, node->next()));
      transposed = {transpose, 0};
    }
    graph_->SetInput(use.consumer, static_cast<int>(use.index), transposed);
  }
  return absl::OkStatus();
}

absl::Status TransposedRegion::ChangeOrder() {
  for (Node* node : nodes_) PF_RETURN_IF_ERROR(ChangeInputs(node));
  for (Node* node : nodes_) {
    PF_RETURN_IF_ERROR(ChangeUses(node));
    node->RemoveAttr("_output_shapes");
    if (FindLayoutOperands(node->op()) != nullptr) PF_RETURN_IF_ERROR(SetFormat(node, format_, inverse_));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
