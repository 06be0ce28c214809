// Selects operators from the outputs to the inputs, as the writer of TensorFlow Lite models does.
#include "transforms/rewrites/quantizable_operators.h"

#include <algorithm>
#include <utility>

#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/ops/op_schema.h"
#include "transforms/rewrites/constant_values.h"

namespace permafrost {
namespace {

// Properties of an op, combined with |.
enum Traits : uint32_t {
  kTakesInt16 = 1 << 0,
  kOneScale = 1 << 1,         // Operands and result have one scale.
  kTakesActivation = 1 << 2,  // A following Relu or Relu6 belongs to the operator.
  kIndexResult = 1 << 3,      // The results are integers without scale.
};

constexpr int kAllButLast = -1;
constexpr int kAll = -2;

// An op that LiteRT computes on codes. Sources: the kernels' Prepare functions as docs/design/tflite.md lists them.
// Not listed are ops whose reference kernels are missing (Elu) or wrong (Sum), and functions whose results have too
// wide a range for codes (Exp, Log, Rsqrt).
struct OpRow {
  ops::OpId op;
  QuantizableKind kind;
  int first, count;  // Operands with codes; `count` may be kAllButLast or kAll.
  uint32_t traits;
  FixedScale fixed8 = {}, fixed16 = {};  // Scale 0: not fixed.
};

constexpr QuantizableKind kComputed = QuantizableKind::kComputed, kMoved = QuantizableKind::kMoved;
constexpr FixedScale kOf256 = {1.f / 256, -128}, kOf128 = {1.f / 128, 0}, kOf32768 = {1.f / 32768, 0};

constexpr OpRow kRows[] = {
    {ops::kAdd, kComputed, 0, 2, kTakesInt16 | kTakesActivation},
    {ops::kAddV2, kComputed, 0, 2, kTakesInt16 | kTakesActivation},
    {ops::kBiasAdd, kComputed, 0, 2, kTakesInt16 | kTakesActivation},
    {ops::kSub, kComputed, 0, 2, kTakesInt16 | kTakesActivation},
    {ops::kMul, kComputed, 0, 2, kTakesInt16 | kTakesActivation},
    {ops::kSquaredDifference, kComputed, 0, 2, 0},
    {ops::kBatchMatMulV2, kComputed, 0, 2, kTakesInt16},
    {ops::kAvgPool, kComputed, 0, 1, kTakesInt16 | kOneScale | kTakesActivation},
    {ops::kMean, kComputed, 0, 1, kTakesInt16},
    {ops::kSoftmax, kComputed, 0, 1, kTakesInt16, kOf256, kOf32768},
    {ops::kLogSoftmax, kComputed, 0, 1, 0, {16.f / 256, 127}},
    {ops::kSigmoid, kComputed, 0, 1, kTakesInt16, kOf256, kOf32768},
    {ops::kTanh, kComputed, 0, 1, kTakesInt16, kOf128, kOf32768},
    {ops::kRelu, kComputed, 0, 1, kTakesInt16},
    {ops::kRelu6, kComputed, 0, 1, 0},
    {ops::kLeakyRelu, kComputed, 0, 1, kTakesInt16},
    {ops::kAbs, kComputed, 0, 1, kTakesInt16},
    {ops::kResizeBilinear, kComputed, 0, 1, kTakesInt16 | kOneScale},
    {ops::kMaxPool, kMoved, 0, 1, kTakesInt16},
    {ops::kConcatV2, kMoved, 0, kAllButLast, kTakesInt16},
    {ops::kReshape, kMoved, 0, 1, kTakesInt16},
    {ops::kSqueeze, kMoved, 0, 1, kTakesInt16},
    {ops::kExpandDims, kMoved, 0, 1, kTakesInt16},
    {ops::kTranspose, kMoved, 0, 1, kTakesInt16},
    {ops::kPad, kMoved, 0, 1, kTakesInt16},
    {ops::kMirrorPad, kMoved, 0, 1, 0},
    {ops::kPack, kMoved, 0, kAll, kTakesInt16},
    {ops::kUnpack, kMoved, 0, 1, kTakesInt16},
    {ops::kSplit, kMoved, 1, 1, kTakesInt16},
    {ops::kSplitV, kMoved, 0, 1, kTakesInt16},
    {ops::kSlice, kMoved, 0, 1, kTakesInt16},
    {ops::kStridedSlice, kMoved, 0, 1, kTakesInt16},
    {ops::kGatherV2, kMoved, 0, 1, kTakesInt16},
    {ops::kSpaceToDepth, kMoved, 0, 1, 0},
    {ops::kDepthToSpace, kMoved, 0, 1, 0},
    {ops::kBatchToSpaceND, kMoved, 0, 1, 0},
    {ops::kMax, kMoved, 0, 1, kTakesInt16},
    {ops::kMin, kMoved, 0, 1, kTakesInt16},
    {ops::kMaximum, kMoved, 0, 2, kTakesInt16},
    {ops::kMinimum, kMoved, 0, 2, kTakesInt16},
    {ops::kResizeNearestNeighbor, kMoved, 0, 1, kTakesInt16},
    {ops::kArgMax, kMoved, 0, 1, kIndexResult},
    {ops::kArgMin, kMoved, 0, 1, kIndexResult},
};

const OpRow* RowOf(Op op) {
  for (const OpRow& row : kRows) {
    if (op == row.op) return &row;
  }
  return nullptr;
}

bool IsChannelAddition(const Node& node) {
  return (node.op() == ops::kAdd || node.op() == ops::kAddV2 || node.op() == ops::kBiasAdd) &&
         node.num_data_inputs() == 2;
}

// The input with the weights of a convolution or matrix product; -1 for other ops.
int WeightsInput(const Node& node) {
  const Op op = node.op();
  if (op == ops::kConv2D || op == ops::kDepthwiseConv2dNative || op == ops::kMatMul) {
    return node.num_data_inputs() == 2 ? 1 : -1;
  }
  if (op == ops::kBatchMatMulV2 && node.num_data_inputs() == 2) return 1;
  if (op == ops::kConv2DBackpropInput && node.num_data_inputs() == 3) return 1;
  return -1;
}

class Finder {
 public:
  Finder(const Graph& graph, const ShapeMap& shapes) : graph_(graph), shapes_(shapes) {
    context_.is_read_once = [this](const Node& node) { return IsInner({const_cast<Node*>(&node), 0}); };
    context_.shape_of = [this](TensorRef ref) { return shapes_.Of(ref); };
  }

  absl::StatusOr<std::vector<QuantizableOperator>> Run() {
    PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(graph_));
    std::vector<Node*> roots;
    for (const Endpoint& output : graph_.outputs()) roots.push_back(output.node);
    is_needed_ = ReachedBackwards(graph_, roots, {});
    is_taken_.assign(graph_.id_limit(), false);
    std::vector<QuantizableOperator> found;
    for (size_t i = order.size(); i-- > 0;) {
      Node* node = order[i];
      if (!is_needed_[node->id()] || is_taken_[node->id()] || graph_.IsInput(node)) continue;
      std::optional<QuantizableOperator> op = OperatorOf(node);
      if (!op.has_value()) continue;
      for (const Node* inner : op->nodes) is_taken_[inner->id()] = true;
      found.push_back(*std::move(op));
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  bool IsInner(TensorRef ref) const {
    if (ref.node == nullptr || ref.port != 0 || graph_.IsEndpoint(ref.node)) return false;
    int readers = 0;
    for (const Use& use : ref.node->uses()) {
      const Node& reader = *use.consumer;
      if (reader.input(static_cast<int>(use.index)).is_control()) return false;
      readers += is_needed_[reader.id()] ? 1 : 0;
    }
    return readers == 1;
  }

  bool IsFloat(TensorRef ref) const {
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*ref.node);
    return types.ok() && ref.port >= 0 && static_cast<size_t>(ref.port) < types->size() &&
           (*types)[static_cast<size_t>(ref.port)] == DType::kFloat;
  }

  static bool IsNhwc(const Node& node) {
    const absl::StatusOr<std::string> format = StringAttr(node, "data_format");
    return !format.ok() || *format == "NHWC";
  }

  std::optional<QuantizableOperator> OperatorOf(Node* root) {
    Node* core = root;
    Node* activation = nullptr;
    if (root->op() == ops::kRelu || root->op() == ops::kRelu6) {
      if (IsInner(root->input(0))) {
        activation = root;
        core = root->input(0).node;
      }
    }
    if (std::optional<QuantizableOperator> op = Weighted(root, core, activation); op.has_value()) return op;
    if (activation != nullptr) {
      const OpRow* row = RowOf(core->op());
      const bool is_part = MatchComposition(*core, context_).has_value();
      if (row != nullptr && (row->traits & kTakesActivation) != 0 && !is_part) {
        if (std::optional<QuantizableOperator> op = ByRow(root, core, activation, *row); op.has_value()) return op;
      }
    }
    if (std::optional<Composition> composition = MatchComposition(*root, context_); composition.has_value()) {
      return Composed(root, *std::move(composition));
    }
    const OpRow* row = RowOf(root->op());
    return row == nullptr ? std::nullopt : ByRow(root, root, nullptr, *row);
  }

  std::optional<QuantizableOperator> Weighted(Node* root, Node* core, Node* activation) {
    QuantizableOperator op;
    op.kind = QuantizableKind::kWeighted;
    op.takes_int16 = true;
    op.root = root;
    op.activation = activation;
    Node* biased = nullptr;
    if (IsChannelAddition(*core) && IsNhwc(*core)) {
      for (const int side : {0, 1}) {
        const TensorRef base = core->input(side), bias = core->input(1 - side);
        if (!IsInner(base) || WeightsInput(*base.node) < 0 || !FloatConstant(bias).has_value()) continue;
        biased = core;
        op.bias = bias;
        op.bias_input = side;
        core = base.node;
        break;
      }
    }
    op.core = core;
    op.weights = WeightsInput(*core);
    if (op.weights < 0 || !IsNhwc(*core) || !IsFloat({core, 0})) return std::nullopt;
    const std::optional<Tensor> weights = FloatConstant(core->input(op.weights));
    if (!weights.has_value() || weights->num_elements() == 0) return std::nullopt;
    const int rank = core->op() == ops::kMatMul || core->op() == ops::kBatchMatMulV2 ? 2 : 4;
    if (weights->shape().rank() != rank) return std::nullopt;
    op.operands = {core->op() == ops::kConv2DBackpropInput ? 2 : 0};
    if (FloatConstant(core->input(op.operands[0])).has_value()) return std::nullopt;
    if (op.bias.node != nullptr) {
      const std::optional<Tensor> bias = FloatConstant(op.bias);
      const int64_t channels = Channels(*core, weights->shape());
      const Shape& shape = bias->shape();
      const bool is_vector = shape.rank() > 0 && shape.rank() <= rank && shape.dim(shape.rank() - 1) == channels;
      if (bias->num_elements() != 1 && !(is_vector && bias->num_elements() == channels)) return std::nullopt;
    }
    for (Node* node : {root, biased, core}) {
      if (node != nullptr && std::find(op.nodes.begin(), op.nodes.end(), node) == op.nodes.end()) {
        op.nodes.push_back(node);
      }
    }
    return op;
  }

  static int64_t Channels(const Node& core, const Shape& weights) {
    if (core.op() == ops::kConv2D) return weights.dim(3);
    if (core.op() == ops::kDepthwiseConv2dNative) return weights.dim(2) * weights.dim(3);
    if (core.op() == ops::kConv2DBackpropInput) return weights.dim(2);
    const bool transposes = BoolAttr(core, core.op() == ops::kMatMul ? "transpose_b" : "adj_y").value_or(false);
    return weights.dim(transposes ? 0 : 1);
  }

  std::optional<QuantizableOperator> Composed(Node* root, Composition composition) {
    QuantizableOperator op;
    op.kind = kComputed;
    op.root = op.core = root;
    op.operands = {0};
    op.nodes = {root};
    for (Node* node : composition.inner) op.nodes.push_back(node);
    if (composition.function == ComposedFunction::kL2Normalization) op.fixed8 = kOf128;
    if (!IsFloat({root, 0}) || !IsFloat(composition.x)) return std::nullopt;
    if (FloatConstant(composition.x).has_value()) return std::nullopt;
    op.composition = std::move(composition);
    return op;
  }

  std::optional<QuantizableOperator> ByRow(Node* root, Node* core, Node* activation, const OpRow& row) {
    QuantizableOperator op;
    op.kind = row.kind;
    op.root = root;
    op.core = core;
    op.activation = activation;
    op.takes_int16 = (row.traits & kTakesInt16) != 0;
    op.has_one_scale = row.kind == kMoved || (row.traits & kOneScale) != 0;
    op.has_code_result = (row.traits & kIndexResult) == 0;
    if (row.fixed8.scale > 0) op.fixed8 = row.fixed8;
    if (row.fixed16.scale > 0) op.fixed16 = row.fixed16;
    op.nodes = {root};
    if (core != root) op.nodes.push_back(core);
    if (!IsNhwc(*core)) return std::nullopt;
    const int inputs = core->num_data_inputs();
    const int count = row.count == kAll ? inputs : row.count == kAllButLast ? inputs - 1 : row.count;
    if (count < 1 || row.first + count > inputs) return std::nullopt;
    bool all_constant = true;
    for (int i = row.first; i < row.first + count; ++i) {
      if (!IsFloat(core->input(i))) return std::nullopt;
      all_constant = all_constant && FloatConstant(core->input(i)).has_value();
      op.operands.push_back(i);
    }
    if (all_constant) return std::nullopt;
    // Axes, sizes and the like have to be known where kernels demand it.
    if ((core->op() == ops::kMean || core->op() == ops::kMax || core->op() == ops::kMin) &&
        !IntegerConstant(core->input(1)).has_value()) {
      return std::nullopt;
    }
    return op;
  }

  const Graph& graph_;
  const ShapeMap& shapes_;
  CompositionContext context_;
  std::vector<bool> is_needed_, is_taken_;
};

}  // namespace

absl::StatusOr<std::vector<QuantizableOperator>> FindQuantizableOperators(const Graph& graph, const ShapeMap& shapes) {
  return Finder(graph, shapes).Run();
}

}  // namespace permafrost
