// Implements the index of forms by op, and the clamp.
#include "io/formats/tflite/forms.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

// Returns the value of a float constant of one element.
std::optional<double> FloatScalar(TensorRef ref) {
  const Node* constant = ConstantBehind(ref);
  if (constant == nullptr || constant->graph().IsInput(constant)) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(*constant);
  if (!value.ok() || value->dtype() != DType::kFloat || value->num_elements() != 1) return std::nullopt;
  return value->elements<float>()[0];
}

// Returns the operand other than the constant `value`, or a reference without node.
TensorRef Without(const Node& node, double value) {
  if (node.num_data_inputs() != 2) return {};
  for (const int side : {0, 1}) {
    if (FloatScalar(node.input(side)) == value) return node.input(1 - side);
  }
  return {};
}

}  // namespace

const std::vector<const OperatorRow*>& FormsOf(Op op) {
  using Rows = absl::flat_hash_map<Op, std::vector<const OperatorRow*>>;
  static const auto* const kForms = [] {
    auto* forms = new Rows;
    for (const absl::Span<const OperatorRow> family : {ArrayOperators(), ArithmeticOperators(), NeuralOperators(),
                                                       ControlOperators(), ResourceOperators(), VolumeOperators()}) {
      for (const OperatorRow& row : family) {
        if (row.form.write == nullptr) continue;
        for (const ops::OpId id : row.form.ops) {
          if (id != ops::kNumKnownOps) (*forms)[Op(id)].push_back(&row);
        }
      }
    }
    return forms;
  }();
  static const auto* const kNone = new std::vector<const OperatorRow*>;
  const auto found = kForms->find(op);
  return found == kForms->end() ? *kNone : found->second;
}

const Node* WeightBehind(TensorRef ref) {
  const Node* constant = ConstantBehind(ref);
  const Node& node = *ref.node;
  if (constant == nullptr && ref.port == 0 && node.op() == ops::kCast && node.num_data_inputs() == 1 &&
      !node.graph().IsEndpoint(&node) && TypeAttr(node, "SrcT").value_or(DType::kInvalid) == DType::kHalf &&
      TypeAttr(node, "DstT").value_or(DType::kInvalid) == DType::kFloat) {
    constant = ConstantBehind(node.input(0));
  }
  return constant == nullptr || constant->graph().IsInput(constant) ? nullptr : constant;
}

bool IsClamp(const Node& node, double low, double high, TensorRef* x) {
  const bool is_outer_maximum = node.op() == ops::kMaximum;
  if (!is_outer_maximum && node.op() != ops::kMinimum) return false;
  const TensorRef inner = Without(node, is_outer_maximum ? low : high);
  if (inner.node == nullptr || inner.port != 0 || inner.node->uses().size() != 1) return false;
  if (inner.node->graph().IsEndpoint(inner.node)) return false;
  if (inner.node->op() != (is_outer_maximum ? ops::kMinimum : ops::kMaximum)) return false;
  const TensorRef value = Without(*inner.node, is_outer_maximum ? high : low);
  if (value.node == nullptr) return false;
  *x = value;
  return true;
}

}  // namespace permafrost
