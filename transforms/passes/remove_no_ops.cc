// Removes nodes whose output equals an input.
#include <algorithm>
#include <optional>
#include <vector>

#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

constexpr WayOut kGiveShapes = {"give the inputs fixed shapes"};

bool IsOneOf(Op op, std::initializer_list<Op> list) { return std::find(list.begin(), list.end(), op) != list.end(); }

// Known values and shapes of a graph. Valid while the graph is unchanged.
class NoOpFinder {
 public:
  // `shapes` may be null.
  NoOpFinder(const ShapeMap* shapes, PassContext* context) : shapes_(shapes), context_(context) {}

  // Returns the input that output 0 of the node equals, kEachPort, or kNoSource.
  int SourceInput(const Node& node) const {
    if (IsCopy(node)) return 0;
    if (node.op() == ops::kIdentityN) return kEachPort;
    if (IsOneOf(node.op(), {ops::kConcatV2, ops::kAddN, ops::kConcat, ops::kSplit, ops::kSplitV})) {
      return OnlyPart(node);
    }
    if (IsIdempotent(node)) return 0;
    if (const int kept = NeutralOperand(node); kept != kNoSource) return kept;
    if (const int chosen = ChosenBranch(node); chosen != kNoSource) return chosen;
    if (IsReshapeToSame(node) || IsIdentityTranspose(node) || KeepsEveryElement(node)) return 0;
    TellUnknownShape(node);
    return kNoSource;
  }

 private:
  Shape ShapeOf(TensorRef ref) const { return shapes_ == nullptr ? Shape::UnknownRank() : shapes_->Of(ref); }

  // Returns true if output 0 is known to have the shape of input i.
  bool HasShapeOfInput(const Node& node, int i) const {
    const Shape out = ShapeOf({const_cast<Node*>(&node), 0});
    return out.IsFullyKnown() && out == ShapeOf(node.input(i));
  }

  // Records a miss for a node that would be a no-op if unknown dimensions were equal, as all known ones are.
  void TellUnknownShape(const Node& node) const {
    if (!DependsOnShape(node.op()) || node.num_data_inputs() == 0) return;
    const Shape in = ShapeOf(node.input(0)), out = ShapeOf({const_cast<Node*>(&node), 0});
    if (!in.has_rank() || !out.has_rank() || in.rank() != out.rank() || (in.IsFullyKnown() && out.IsFullyKnown()))
      return;
    for (int d = 0; d < in.rank(); ++d) {
      if (in.dim(d) != out.dim(d)) return;
    }
    context_->MissIfWanted(node, kGiveShapes, "may return its input unchanged, but of the shapes only ", in.ToString(),
                           " is known");
  }

  // Returns true for the ops below that keep every element if the shape is unchanged, whatever their other inputs.
  static bool DependsOnShape(Op op) {
    return IsOneOf(op, {ops::kReshape, ops::kSlice, ops::kPad, ops::kPadV2, ops::kMirrorPad, ops::kTile,
                        ops::kBroadcastTo, ops::kSpaceToBatchND, ops::kBatchToSpaceND, ops::kResizeNearestNeighbor});
  }

  static bool IsCopy(const Node& node) {
    if (IsOneOf(node.op(), {ops::kIdentity, ops::kStopGradient, ops::kPreventGradient, ops::kSnapshot})) return true;
    if (node.op() != ops::kCast && node.op() != ops::kBitcast) return false;
    const absl::StatusOr<DType> from = TypeAttr(node, node.op() == ops::kCast ? "SrcT" : "T");
    const absl::StatusOr<DType> to = TypeAttr(node, node.op() == ops::kCast ? "DstT" : "type");
    return from.ok() && to.ok() && *from == *to;
  }

  // Returns the only data input of a concatenation or split with a single part.
  static int OnlyPart(const Node& node) {
    const bool joins_by_axis = node.op() == ops::kConcat || node.op() == ops::kConcatV2;
    const bool splits = node.op() == ops::kSplit || node.op() == ops::kSplitV;
    const bool axis_is_first = node.op() == ops::kConcat || node.op() == ops::kSplit;
    if (splits) {
      const absl::StatusOr<int64_t> parts = IntAttr(node, "num_split");
      if (!parts.ok() || *parts != 1) return kNoSource;
    } else if (node.num_data_inputs() != (joins_by_axis ? 2 : 1)) {
      return kNoSource;
    }
    const int part = axis_is_first ? 1 : 0;
    return part < node.num_data_inputs() ? part : kNoSource;
  }

  // Returns true if f(f(x)) = f(x) or similar applies: the input is already a result of the same operation.
  static bool IsIdempotent(const Node& node) {
    const TensorRef input = node.input(0);
    if (input.port != 0) return false;
    const Op before = input.node->op();
    switch (node.op().id()) {
      case ops::kRelu:
      case ops::kAbs:
        return IsOneOf(before, {ops::kRelu, ops::kRelu6, ops::kSigmoid, ops::kSoftmax, ops::kAbs});
      case ops::kRelu6:
        return IsOneOf(before, {ops::kRelu6, ops::kSigmoid, ops::kSoftmax});
      case ops::kFloor:
      case ops::kCeil:
      case ops::kRound:
      case ops::kRint:
        return IsOneOf(before, {ops::kFloor, ops::kCeil, ops::kRound, ops::kRint});
      case ops::kSign:
        return before == ops::kSign;
      default:
        return false;
    }
  }

  // Returns the operand that adding zeros or multiplying by ones leaves unchanged.
  int NeutralOperand(const Node& node) const {
    if (node.num_data_inputs() != 2) return kNoSource;
    switch (node.op().id()) {
      case ops::kMul:
        if (IsOnes(node.input(1)) && KeepsOperand(node, 0)) return 0;
        return IsOnes(node.input(0)) && KeepsOperand(node, 1) ? 1 : kNoSource;
      case ops::kRealDiv:
      case ops::kDiv:
      case ops::kPow:
        return UniformConstant(node.input(1)) == 1.0 && KeepsOperand(node, 0) ? 0 : kNoSource;
      case ops::kAdd:
      case ops::kAddV2:
        if (UniformConstant(node.input(1)) == 0.0 && KeepsOperand(node, 0)) return 0;
        return UniformConstant(node.input(0)) == 0.0 && KeepsOperand(node, 1) ? 1 : kNoSource;
      case ops::kSub:
      case ops::kBiasAdd:
        return UniformConstant(node.input(1)) == 0.0 && KeepsOperand(node, 0) ? 0 : kNoSource;
      default:
        return kNoSource;
    }
  }

  // Returns the selected input of a Select with a uniform constant condition.
  int ChosenBranch(const Node& node) const {
    if ((node.op() != ops::kSelect && node.op() != ops::kSelectV2) || node.num_data_inputs() != 3) return kNoSource;
    std::optional<bool> condition;
    if (IsAlwaysTrue(node.input(0))) {
      condition = true;
    } else if (const Node* constant = ConstantBehind(node.input(0)); constant != nullptr) {
      const absl::StatusOr<Tensor> value = ConstValue(*constant);
      if (value.ok() && value->dtype() == DType::kBool && value->num_elements() > 0) {
        const absl::string_view bytes = value->bytes();
        if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return c == bytes[0]; })) condition = bytes[0] != 0;
      }
    }
    if (!condition.has_value()) return kNoSource;
    const int chosen = *condition ? 1 : 2;
    if (node.op() == ops::kSelect || HasShapeOfInput(node, chosen)) return chosen;
    context_->MissIfWanted(node, kGiveShapes, "always takes input ", chosen,
                           ", whose shape is not known to be that of the result");
    return kNoSource;
  }

  // Returns true if the other operand does not broadcast operand `i` to a larger shape.
  bool KeepsOperand(const Node& node, int i) const {
    const Shape kept = ShapeOf(node.input(i)), other = ShapeOf(node.input(1 - i));
    if (node.op() == ops::kBiasAdd) return true;
    if (other.has_rank() && other.rank() == 0) return true;
    if (other.IsFullyKnown() && kept.has_rank() && kept.rank() >= other.rank()) {
      const auto fits = [&](int d) {
        const int64_t dim = kept.dim(kept.rank() - other.rank() + d);
        return other.dim(d) == 1 || other.dim(d) == dim;
      };
      bool all = true;
      for (int d = 0; d < other.rank(); ++d) all = all && fits(d);
      if (all) return true;
    }
    if (HasShapeOfInput(node, i) || IsShapedLike(node.input(1 - i), node.input(i))) return true;
    context_->MissIfWanted(node, kGiveShapes, "changes no element of '", node.input(i).ToString(),
                           "', but may widen it: shapes are not known");
    return false;
  }

  // --- Residue of dropout in a graph that was frozen for training
  // ----------------------------------------------------- Returns true if a comparison of random numbers from [0, 1)
  // always holds: drop rate 0.
  static bool IsAlwaysTrue(TensorRef ref) {
    const Node& node = *ref.node;
    if (node.op() != ops::kGreaterEqual || node.num_data_inputs() != 2) return false;
    const std::optional<double> rate = UniformConstant(node.input(1));
    return node.input(0).node->op() == ops::kRandomUniform && rate.has_value() && *rate <= 0;
  }

  // Returns the node that generates the random numbers of `ref`, if the result is always one.
  static const Node* RandomOnes(TensorRef ref) {
    const Node& node = *ref.node;
    if (node.op() == ops::kCast && node.num_data_inputs() == 1 && IsAlwaysTrue(node.input(0))) {
      return node.input(0).node->input(0).node;
    }
    if (node.op() != ops::kFloor || node.num_data_inputs() != 1) return nullptr;
    const Node& sum = *node.input(0).node;
    if ((sum.op() != ops::kAdd && sum.op() != ops::kAddV2) || sum.num_data_inputs() != 2) return nullptr;
    for (int i = 0; i < 2; ++i) {
      if (sum.input(i).node->op() == ops::kRandomUniform && UniformConstant(sum.input(1 - i)) == 1.0) {
        return sum.input(i).node;
      }
    }
    return nullptr;
  }

  static bool IsOnes(TensorRef ref) { return UniformConstant(ref) == 1.0 || RandomOnes(ref) != nullptr; }

  // Returns true if `ref` is made of random numbers of the shape of `other`, or of the tensor that `other` was scaled
  // from.
  static bool IsShapedLike(TensorRef ref, TensorRef other) {
    const Node* random = RandomOnes(ref);
    if (random == nullptr || random->num_data_inputs() != 1) return false;
    const Node& shape = *random->input(0).node;
    if (shape.op() != ops::kShape || shape.num_data_inputs() != 1) return false;
    if (shape.input(0) == other) return true;
    const Node& scaled = *other.node;
    if (!IsOneOf(scaled.op(), {ops::kMul, ops::kRealDiv}) || scaled.num_data_inputs() != 2) return false;
    const Node* constant = ConstantBehind(scaled.input(1));
    const absl::StatusOr<Tensor> factor = constant == nullptr ? Tensor() : ConstValue(*constant);
    return constant != nullptr && factor.ok() && factor->shape().rank() == 0 && scaled.input(0) == shape.input(0);
  }

  // --- Shapes -------------------------------------------------------------------------------------------------------
  bool IsReshapeToSame(const Node& node) const {
    if (node.op() != ops::kReshape || node.num_data_inputs() != 2) return false;
    if (HasShapeOfInput(node, 0)) return true;
    // [?, 7] to [-1, 7]: the unknown dimension is the one that follows from the others.
    const Shape in = ShapeOf(node.input(0));
    const std::optional<std::vector<int64_t>> dims = IntegerConstant(node.input(1));
    if (!in.has_rank() || !dims.has_value() || static_cast<int>(dims->size()) != in.rank()) return false;
    int open = 0;
    for (int d = 0; d < in.rank(); ++d) {
      if ((*dims)[d] == -1) {
        ++open;
      } else if (in.dim(d) == kUnknownDim || in.dim(d) != (*dims)[d]) {
        return false;
      }
    }
    // -1 is ambiguous next to a dimension of 0.
    return open <= 1 && std::count(dims->begin(), dims->end(), 0) == 0;
  }

  static bool IsIdentityTranspose(const Node& node) {
    if (node.op() != ops::kTranspose || node.num_data_inputs() != 2) return false;
    const std::optional<std::vector<int64_t>> order = IntegerConstant(node.input(1));
    if (!order.has_value()) return false;
    for (size_t d = 0; d < order->size(); ++d) {
      if ((*order)[d] != static_cast<int64_t>(d)) return false;
    }
    return true;
  }

  // Returns true for ops that keep all elements if they keep the shape.
  bool KeepsEveryElement(const Node& node) const {
    switch (node.op().id()) {
      case ops::kSlice:
      case ops::kPad:
      case ops::kPadV2:
      case ops::kMirrorPad:
      case ops::kTile:
      case ops::kBroadcastTo:
      case ops::kSpaceToBatchND:
      case ops::kBatchToSpaceND:
      case ops::kSqueeze:
      case ops::kSum:
      case ops::kMean:
      case ops::kProd:
      case ops::kMax:
      case ops::kMin:
        return HasElements(node) && HasShapeOfInput(node, 0);
      case ops::kResizeBilinear:
      case ops::kResizeNearestNeighbor: {
        const absl::StatusOr<DType> type = TypeAttr(node, "T");
        const bool keeps_type = node.op() == ops::kResizeNearestNeighbor || (type.ok() && *type == DType::kFloat);
        return keeps_type && HasElements(node) && HasShapeOfInput(node, 0);
      }
      case ops::kMaxPool:
      case ops::kAvgPool:
        return IsAllOnes(node, "ksize") && IsAllOnes(node, "strides");
      case ops::kStridedSlice: {
        if (node.num_data_inputs() != 4 || !HasElements(node) || !HasShapeOfInput(node, 0)) return false;
        const std::optional<std::vector<int64_t>> strides = IntegerConstant(node.input(3));
        const auto has_no = [&](const char* mask) { return IntAttr(node, mask).value_or(1) == 0; };
        return strides.has_value() && std::all_of(strides->begin(), strides->end(), [](int64_t s) { return s == 1; }) &&
               has_no("new_axis_mask") && has_no("shrink_axis_mask") && has_no("ellipsis_mask");
      }
      case ops::kReverseV2: {
        const Shape shape = ShapeOf(node.input(0));
        const std::optional<std::vector<int64_t>> axes = IntegerConstant(node.input(1));
        if (!shape.has_rank() || !axes.has_value()) return false;
        return std::all_of(axes->begin(), axes->end(), [&](int64_t axis) {
          if (axis < 0) axis += shape.rank();
          return axis >= 0 && axis < shape.rank() && shape.dim(static_cast<int>(axis)) == 1;
        });
      }
      default:
        return false;
    }
  }

  bool HasElements(const Node& node) const {
    const Shape shape = ShapeOf(node.input(0));
    return shape.has_rank() && std::count(shape.dims().begin(), shape.dims().end(), 0) == 0;
  }

  static bool IsAllOnes(const Node& node, absl::string_view attr) {
    const absl::StatusOr<std::vector<int64_t>> values = IntListAttr(node, attr);
    return values.ok() && std::all_of(values->begin(), values->end(), [](int64_t v) { return v == 1; });
  }

  const ShapeMap* shapes_;
  PassContext* context_;
};

// Rewrites Reshape(Reshape(x, a), b) to Reshape(x, b), whatever a is.
absl::StatusOr<int64_t> SkipInnerReshapes(Graph* graph, const std::vector<Node*>& order, PassContext* context) {
  int64_t skipped = 0;
  std::vector<Node*> maybe_unread;
  for (Node* node : order) {
    if (node->op() != ops::kReshape || node->num_data_inputs() != 2) continue;
    Node* inner = node->input(0).node;
    if (inner->op() != ops::kReshape || inner->num_data_inputs() != 2) continue;
    if (!MaySkip(*node, *inner, context)) continue;
    const RewriteScope rewrite(context, graph, {node, inner});
    if (!rewrite) break;
    graph->SetInput(node, 0, inner->input(0));
    maybe_unread.push_back(inner);
    ++skipped;
  }
  PF_ASSIGN_OR_RETURN(const int64_t removed, RemoveUnread(graph, std::move(maybe_unread)));
  return skipped + removed;
}

// Runs one round. A removal may create a no-op for the next round.
absl::StatusOr<int64_t> RemoveOnce(Graph* graph, PassContext* context) {
  int64_t rewrites = 0;
  if (const auto order = StableTopologicalOrder(*graph); order.ok()) {
    PF_ASSIGN_OR_RETURN(rewrites, SkipInnerReshapes(graph, *order, context));
  }
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  if (!shapes.ok()) context->Note(absl::StrCat("shapes are not known: ", shapes.status().message()));
  const NoOpFinder finder(shapes.ok() ? &*shapes : nullptr, context);
  PF_ASSIGN_OR_RETURN(const int64_t removed,
                      SpliceOut(
                          graph, [&](const Node& node) { return finder.SourceInput(node); }, context));
  return rewrites + removed;
}

absl::StatusOr<int64_t> Remove(Graph* graph, const NoParams&, PassContext* context) {
  int64_t rewrites = 0, in_round = 0;
  do {
    context->misses.clear();  // Only the misses of the last round count.
    PF_ASSIGN_OR_RETURN(in_round, RemoveOnce(graph, context));
    rewrites += in_round;
  } while (in_round > 0);
  return rewrites;
}

}  // namespace

// Removes nodes whose output equals an input: Identity, IdentityN port by port, StopGradient, Snapshot; Cast and
// Bitcast to the same type; Concat, AddN and Split with one part; Reshape, Slice, Pad, Tile, a reduction or a resize
// that does not change the shape; Transpose with the identity permutation; a repeated idempotent op such as Relu or
// Floor; addition of zeros and multiplication by ones; Select with equal branches; and the remains of dropout with rate
// 0. Of two consecutive Reshapes, the first is removed.
//
//   Add(Mul(Reshape(x, shape of x), 1), 0)   =>   x
//
// Shapes are inferred. If a shape is unknown, ops that may broadcast their input are kept, and so are all nodes that
// remove_nodes leaves unchanged. The sign of a zero may change: -0 + 0 is 0.
DEFINE_PASS(remove_no_ops) {
  return Pass<NoParams>("Removes nodes whose output equals their input.")
      .Why("Each of these nodes costs load time and run time, and hides adjacent ops from other passes.")
      .Numerics(Exact())
      .Idempotent()
      .Run(Remove);
}

}  // namespace permafrost
