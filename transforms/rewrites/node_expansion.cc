// Builds the nodes of an expansion.
#include "transforms/rewrites/node_expansion.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {

std::string NodeExpansion::NameOf(absl::string_view suffix) const {
  return graph_->UniqueName(absl::StrCat(node_->name(), "/", suffix));
}

absl::StatusOr<TensorRef> NodeExpansion::Const(absl::string_view suffix, Tensor value) {
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddConst(NameOf(suffix), std::move(value), node_));
  node->set_device(node_->device());
  return TensorRef{node, 0};
}

absl::StatusOr<TensorRef> NodeExpansion::Float(absl::string_view suffix, float value) {
  return Const(suffix, Tensor::Scalar(value));
}

absl::StatusOr<TensorRef> NodeExpansion::Int(absl::string_view suffix, int64_t value) {
  return Const(suffix, Tensor::Scalar<int32_t>(static_cast<int32_t>(value)));
}

absl::StatusOr<TensorRef> NodeExpansion::Ints(absl::string_view suffix, std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Ints(suffix, Shape({count}), std::move(values));
}

absl::StatusOr<TensorRef> NodeExpansion::Ints(absl::string_view suffix, Shape shape, std::vector<int32_t> values) {
  return Const(suffix, Tensor::FromVector(std::move(shape), std::move(values)));
}

absl::StatusOr<TensorRef> NodeExpansion::Add(absl::string_view suffix, Op op, absl::Span<const TensorRef> inputs,
                                             NamedAttrs attrs) {
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NameOf(suffix), op, node_));
  node->set_device(node_->device());
  for (const TensorRef& input : inputs) graph_->AddInput(node, input);
  for (auto& [key, value] : attrs) node->SetAttr(key, std::move(value));
  return TensorRef{node, 0};
}

absl::StatusOr<TensorRef> NodeExpansion::Transposed(absl::string_view suffix, TensorRef x, std::vector<int32_t> order,
                                                    const AttrValue& type) {
  PF_ASSIGN_OR_RETURN(const TensorRef perm, Ints(absl::StrCat(suffix, "_perm"), std::move(order)));
  return Add(suffix, ops::kTranspose, {x, perm}, {{"T", type}, {"Tperm", AttrValue::Type(DType::kInt32)}});
}

absl::Status NodeExpansion::Become(Op op, absl::Span<const TensorRef> inputs, NamedAttrs attrs) {
  while (node_->num_data_inputs() > 0) graph_->RemoveInput(node_, node_->num_data_inputs() - 1);
  for (const TensorRef& input : inputs) graph_->AddInput(node_, input);
  node_->set_op(op);
  node_->ClearAttrs();
  for (auto& [key, value] : attrs) node_->SetAttr(key, std::move(value));
  return absl::OkStatus();
}

}  // namespace permafrost
