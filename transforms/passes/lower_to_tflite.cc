// Rewrites ops that TensorFlow Lite has no operator for as ops that it has.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/batch_norm.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/control_flow.h"
#include "transforms/rewrites/image_windows.h"
#include "transforms/rewrites/node_expansion.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

// One node that is lowered. The node becomes the last op of the replacement, so its name and its readers stay.
class Lowering : private NodeExpansion {
 public:
  // `shapes` may be null.
  Lowering(Graph* graph, Node* node, const ShapeMap* shapes, PassContext* context, std::vector<Node*>* maybe_unread)
      : NodeExpansion(graph, node), shapes_(shapes), context_(context), maybe_unread_(maybe_unread) {}

  // Returns OK if the node was rewritten, FailedPrecondition with the reason for a near miss, Cancelled if there is
  // nothing to rewrite or no permission.
  absl::Status Run() {
    if (node_->num_data_inputs() == 0 || graph_->IsInput(node_)) return LimitReached();
    const Op op = node_->op();
    if (IsBatchNorm(op)) return BatchNorm();
    if (StringAttr(*node_, "data_format").value_or("") == "NCHW") return Nchw();
    if (StringAttr(*node_, "padding").value_or("") == "EXPLICIT") return ExplicitPadding();
    if (op == ops::kMinimum || op == ops::kMaximum) return Bound();
    if (op == ops::kClipByValue) return Clip();
    if (op == ops::kReciprocal || op == ops::kInv) return Reciprocal();
    if (op == ops::kMatMul) return IsFloat() ? TransposedMatMul() : OuterProduct();
    if (op == ops::kStridedSlice) return NewAxes();
    if (op == ops::kSoftplus) return Softplus();
    if (op == ops::kSoftsign) return Softsign();
    if (op == ops::kSelu) return Selu();
    if (op == ops::kAddN) return Sum();
    if (op == ops::kFakeQuantWithMinMaxVars) return FakeQuant();
    if (op == ops::kExpm1 || op == ops::kLog1p) return NearOne();
    if (op == ops::kTan) return Tangent();
    if (op == ops::kErfc) return NegatedFactor();
    if (op == ops::kDivNoNan) return DivNoNan();
    if (op == ops::kIsNan) return IsNan();
    if (op == ops::kEnsureShape) return EnsureShape();
    if (op == ops::kSize) return Size();
    if (op == ops::kMatrixBandPart) return Band();
    if (op == ops::kRFFT) return Rfft();
    if (op == ops::kAssignAddVariableOp || op == ops::kAssignSubVariableOp) return AssignSum();
    if (op == ops::kIf || op == ops::kStatelessIf) return Condition();
    return LimitReached();
  }

 private:
  // Same as the base class, and remembers the old operands, which may have lost their last reader.
  absl::Status Become(Op op, absl::Span<const TensorRef> inputs, NamedAttrs attrs) {
    for (int i = 0; i < node_->num_data_inputs(); ++i) maybe_unread_->push_back(node_->input(i).node);
    return NodeExpansion::Become(op, inputs, std::move(attrs));
  }

  absl::StatusOr<DType> Type() const { return TypeAttr(*node_, "T"); }
  // Returns whether the node computes with float.
  bool IsFloat() const {
    const absl::StatusOr<DType> dtype = Type();
    return dtype.ok() && *dtype == DType::kFloat;
  }
  static AttrValue FloatType() { return AttrValue::Type(DType::kFloat); }

  // Returns the operand beside the constant `value`, for a node with two operands.
  static std::optional<TensorRef> Beside(const Node& node, double value) {
    if (node.num_data_inputs() != 2) return std::nullopt;
    for (const int side : {0, 1}) {
      if (UniformConstant(node.input(side)) == value && KeepsShape(node.input(side))) return node.input(1 - side);
    }
    return std::nullopt;
  }

  // True for a constant of one element without dimensions, which cannot enlarge what it is combined with.
  static bool KeepsShape(TensorRef ref) {
    const std::optional<Tensor> value = FloatConstant(ref);
    return value.has_value() && value->shape().rank() == 0;
  }

  absl::Status BatchNorm() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    PF_ASSIGN_OR_RETURN(permafrost::BatchNorm norm, BatchNormOf(*node_));
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const int64_t channels = static_cast<int64_t>(norm.scale.size());
    const Shape shape = norm.channel_dim == 1 ? Shape({channels, 1, 1}) : Shape({channels});
    PF_ASSIGN_OR_RETURN(const TensorRef scale, Const("scale", Tensor::FromVector(shape, std::move(norm.scale))));
    PF_ASSIGN_OR_RETURN(const TensorRef offset, Const("offset", Tensor::FromVector(shape, std::move(norm.offset))));
    PF_ASSIGN_OR_RETURN(const TensorRef scaled,
                        Add("scaled", ops::kMul, {node_->input(0), scale}, {{"T", FloatType()}}));
    return Become(ops::kAddV2, {scaled, offset}, {{"T", FloatType()}});
  }

  // Puts Transpose nodes around an op of images in NCHW.
  absl::Status Nchw() {
    const Op op = node_->op();
    const bool is_window =
        op == ops::kConv2D || op == ops::kDepthwiseConv2dNative || op == ops::kMaxPool || op == ops::kAvgPool;
    if (!is_window && op != ops::kDepthToSpace && op != ops::kSpaceToDepth) {
      return Blocked(*node_, "has the data_format NCHW");
    }
    const AttrValue* type = node_->FindAttr("T");
    if (type == nullptr) return Blocked(*node_, "has no attr 'T'");
    NamedAttrs attrs;
    for (const Attr& attr : node_->attrs()) {
      AttrValue value = attr.value;
      if (attr.key == "data_format") value = AttrValue::String("NHWC");
      if (attr.key == "strides" || attr.key == "dilations" || attr.key == "ksize") {
        PF_ASSIGN_OR_RETURN(const std::vector<int64_t> list, value.AsIntList());
        if (list.size() != 4) return Blocked(*node_, absl::StrCat("has a malformed attr '", attr.key, "'"));
        value = AttrValue::IntList({list[0], list[2], list[3], list[1]});
      }
      if (attr.key == "explicit_paddings") {
        PF_ASSIGN_OR_RETURN(const std::vector<int64_t> list, value.AsIntList());
        if (list.size() == 8) {
          value = AttrValue::IntList({list[0], list[1], list[4], list[5], list[6], list[7], list[2], list[3]});
        }
      }
      attrs.emplace_back(attr.key, std::move(value));
    }
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const AttrValue t = *type;
    std::vector<TensorRef> inputs;
    for (int i = 0; i < node_->num_data_inputs(); ++i) inputs.push_back(node_->input(i));
    PF_ASSIGN_OR_RETURN(inputs[0], Transposed("to_nhwc", inputs[0], {0, 2, 3, 1}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef inner, Add("nhwc", op, inputs, std::move(attrs)));
    PF_ASSIGN_OR_RETURN(const TensorRef perm, Ints("to_nchw_perm", Shape({4}), {0, 3, 1, 2}));
    return Become(ops::kTranspose, {inner, perm}, {{"T", t}, {"Tperm", AttrValue::Type(DType::kInt32)}});
  }

  absl::Status ExplicitPadding() {
    const Op op = node_->op();
    if (op != ops::kConv2D && op != ops::kDepthwiseConv2dNative && op != ops::kMaxPool) {
      return Blocked(*node_, "has explicit paddings");
    }
    const absl::StatusOr<std::vector<int64_t>> list = IntListAttr(*node_, "explicit_paddings");
    if (!IsFloat() || !list.ok() || list->size() != 8) return Blocked(*node_, "has malformed explicit paddings");
    std::vector<int32_t> paddings;
    for (const int64_t value : *list) {
      if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
        return Blocked(*node_, absl::StrCat("has the explicit padding ", value));
      }
      paddings.push_back(static_cast<int32_t>(value));
    }
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef margins, Ints("paddings", Shape({4, 2}), std::move(paddings)));
    const NamedAttrs attrs = {{"T", FloatType()}, {"Tpaddings", AttrValue::Type(DType::kInt32)}};
    TensorRef padded;
    if (op == ops::kMaxPool) {
      PF_ASSIGN_OR_RETURN(const TensorRef least, Float("least", -std::numeric_limits<float>::infinity()));
      PF_ASSIGN_OR_RETURN(padded, Add("pad", ops::kPadV2, {node_->input(0), margins, least}, attrs));
    } else {
      PF_ASSIGN_OR_RETURN(padded, Add("pad", ops::kPad, {node_->input(0), margins}, attrs));
    }
    graph_->SetInput(node_, 0, padded);
    node_->SetAttr("padding", AttrValue::String("VALID"));
    node_->RemoveAttr("explicit_paddings");
    return absl::OkStatus();
  }

  // Minimum and Maximum with constants that are activations.
  absl::Status Bound() {
    if (!IsFloat() || node_->num_data_inputs() != 2) return LimitReached();
    const bool is_maximum = node_->op() == ops::kMaximum;
    if (const auto inner = Beside(*node_, is_maximum ? 0 : 6); inner.has_value() && inner->port == 0) {
      const Node& below = *inner->node;
      std::optional<TensorRef> x;
      if (is_maximum && below.op() == ops::kRelu6) x = below.input(0);
      if (is_maximum && below.op() == ops::kMinimum) x = Beside(below, 6);
      if (!is_maximum && below.op() == ops::kRelu) x = below.input(0);
      if (!is_maximum && below.op() == ops::kMaximum) x = Beside(below, 0);
      if (x.has_value()) {
        const RewriteScope rewrite(context_, graph_, {node_, &below});
        if (!rewrite) return LimitReached();
        return Become(ops::kRelu6, {*x}, {{"T", FloatType()}});
      }
    }
    if (!is_maximum) return LimitReached();
    for (const int side : {0, 1}) {
      const TensorRef x = node_->input(side), scaled = node_->input(1 - side);
      if (scaled.port != 0 || scaled.node->op() != ops::kMul || scaled.node->num_data_inputs() != 2) continue;
      for (const int factor : {0, 1}) {
        const TensorRef slope = scaled.node->input(factor);
        const std::optional<double> alpha = UniformConstant(slope);
        if (scaled.node->input(1 - factor) != x || !alpha.has_value() || !KeepsShape(slope)) continue;
        // Above 1, the maximum of x and alpha x is the latter for positive x.
        if (!(*alpha >= 0 && *alpha <= 1)) continue;
        const RewriteScope rewrite(context_, graph_, {node_, scaled.node});
        if (!rewrite) return LimitReached();
        return Become(ops::kLeakyRelu, {x},
                      {{"T", FloatType()}, {"alpha", AttrValue::Float(static_cast<float>(*alpha))}});
      }
    }
    return LimitReached();
  }

  absl::Status Clip() {
    if (node_->num_data_inputs() != 3) return LimitReached();
    const AttrValue* type = node_->FindAttr("T");
    if (type == nullptr) return Blocked(*node_, "has no attr 'T'");
    const AttrValue t = *type;
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef most,
                        Add("bounded", ops::kMinimum, {node_->input(0), node_->input(2)}, {{"T", t}}));
    return Become(ops::kMaximum, {most, node_->input(1)}, {{"T", t}});
  }

  absl::Status Reciprocal() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef one, Float("one", 1));
    return Become(ops::kRealDiv, {one, node_->input(0)}, {{"T", FloatType()}});
  }

  absl::Status TransposedMatMul() {
    if (!BoolAttr(*node_, "transpose_a").value_or(false)) return LimitReached();
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef x, Transposed("transposed", node_->input(0), {1, 0}, FloatType()));
    graph_->SetInput(node_, 0, x);
    node_->SetAttr("transpose_a", AttrValue::Bool(false));
    return absl::OkStatus();
  }

  // A product of a column and a row of integers, for which there is no matrix product.
  absl::Status OuterProduct() {
    const AttrValue* type = node_->FindAttr("T");
    if (type == nullptr || node_->num_data_inputs() != 2) return Blocked(*node_, "does not compute with float");
    const Shape column = KnownShape(node_->input(0), shapes_), row = KnownShape(node_->input(1), shapes_);
    const bool is_column = column.has_rank() && column.rank() == 2 && column.dim(1) == 1;
    const bool is_row = row.has_rank() && row.rank() == 2 && row.dim(0) == 1;
    if (!is_column || !is_row || BoolAttr(*node_, "transpose_a").value_or(true) ||
        BoolAttr(*node_, "transpose_b").value_or(true)) {
      return Blocked(*node_, "does not compute with float");
    }
    const AttrValue t = *type;
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Become(ops::kMul, {node_->input(0), node_->input(1)}, {{"T", t}});
  }

  // Replaces ellipses and new axes of a slice, which only new runtimes have, by one entry for each dimension and by
  // ExpandDims.
  absl::Status NewAxes() {
    const absl::StatusOr<int64_t> ellipsis = IntAttr(*node_, "ellipsis_mask"), axes = IntAttr(*node_, "new_axis_mask");
    if (!ellipsis.ok() || !axes.ok() || (*ellipsis == 0 && *axes == 0) || node_->num_data_inputs() != 4) {
      return LimitReached();
    }
    const Shape shape = KnownShape(node_->input(0), shapes_);
    if (!shape.has_rank()) return Blocked(*node_, "slices a tensor of unknown rank");
    std::vector<int64_t> entries[3];  // Begin, end, stride.
    for (int i = 0; i < 3; ++i) {
      std::optional<std::vector<int64_t>> values = IntegerVectorConstant(node_->input(i + 1));
      if (!values.has_value()) return BlockedByVariable(*node_, i + 1, "slices at places that are not constant");
      for (const int64_t value : *values) {
        if (value != static_cast<int32_t>(value)) return Blocked(*node_, "slices at places beyond 32 bits");
      }
      entries[i] = *std::move(values);
    }
    constexpr size_t kMostEntries = 31;  // The masks have 32 bits.
    const size_t count = entries[0].size();
    if (entries[1].size() != count || entries[2].size() != count || count > kMostEntries) {
      return Blocked(*node_, "has a malformed specification");
    }
    int64_t masks[3] = {};  // Begin, end, shrink_axis.
    const char* const keys[3] = {"begin_mask", "end_mask", "shrink_axis_mask"};
    for (int i = 0; i < 3; ++i) {
      PF_ASSIGN_OR_RETURN(masks[i], IntAttr(*node_, keys[i]));
    }
    int num_sliced = 0, num_ellipses = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool is_ellipsis = (*ellipsis >> i & 1) != 0;
      num_ellipses += is_ellipsis ? 1 : 0;
      num_sliced += !is_ellipsis && (*axes >> i & 1) == 0 ? 1 : 0;
    }
    const int rank = shape.rank();
    if (num_ellipses > 1 || num_sliced > rank || rank > static_cast<int>(kMostEntries)) {
      return Blocked(*node_, "has a malformed specification");
    }
    // One entry for each dimension, and the places of new axes in the result.
    std::vector<int32_t> dense[3];
    int64_t dense_masks[3] = {};
    std::vector<int32_t> new_axes;
    int32_t num_kept = 0;
    const auto keep_all = [&] {
      const int64_t bit = int64_t{1} << dense[0].size();
      dense_masks[0] |= bit;
      dense_masks[1] |= bit;
      dense[0].push_back(0);
      dense[1].push_back(0);
      dense[2].push_back(1);
      ++num_kept;
    };
    for (size_t i = 0; i < count; ++i) {
      if ((*ellipsis >> i & 1) != 0) {
        for (int k = 0; k < rank - num_sliced; ++k) keep_all();
      } else if ((*axes >> i & 1) != 0) {
        new_axes.push_back(num_kept++);
      } else {
        const int64_t bit = int64_t{1} << dense[0].size();
        for (int k = 0; k < 3; ++k) {
          if ((masks[k] >> i & 1) != 0) dense_masks[k] |= bit;
          dense[k].push_back(static_cast<int32_t>(entries[k][i]));
        }
        if ((masks[2] >> i & 1) == 0) ++num_kept;
      }
    }
    while (static_cast<int>(dense[0].size()) < rank) keep_all();
    const AttrValue* type = node_->FindAttr("T");
    if (type == nullptr) return Blocked(*node_, "has no attr 'T'");
    const AttrValue t = *type;
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const char* const names[3] = {"begin", "end", "strides"};
    std::vector<TensorRef> inputs = {node_->input(0)};
    for (int k = 0; k < 3; ++k) {
      PF_ASSIGN_OR_RETURN(inputs.emplace_back(), Ints(names[k], Shape({rank}), std::move(dense[k])));
    }
    const NamedAttrs attrs = {{"T", t},
                              {"Index", AttrValue::Type(DType::kInt32)},
                              {"begin_mask", AttrValue::Int(dense_masks[0])},
                              {"end_mask", AttrValue::Int(dense_masks[1])},
                              {"ellipsis_mask", AttrValue::Int(0)},
                              {"new_axis_mask", AttrValue::Int(0)},
                              {"shrink_axis_mask", AttrValue::Int(dense_masks[2])}};
    if (new_axes.empty()) return Become(ops::kStridedSlice, inputs, attrs);
    const int64_t all = (int64_t{1} << rank) - 1;
    const bool keeps_all = dense_masks[0] == all && dense_masks[1] == all && dense_masks[2] == 0;
    TensorRef x = node_->input(0);
    if (!keeps_all || !HasUnitStrides(inputs[3])) {
      PF_ASSIGN_OR_RETURN(x, Add("dense", ops::kStridedSlice, inputs, attrs));
    } else {
      for (size_t k = 1; k < inputs.size(); ++k) maybe_unread_->push_back(inputs[k].node);
    }
    const NamedAttrs expand = {{"T", t}, {"Tdim", AttrValue::Type(DType::kInt32)}};
    for (size_t k = 0; k < new_axes.size(); ++k) {
      PF_ASSIGN_OR_RETURN(const TensorRef axis, Const(absl::StrCat("axis_", k), Tensor::Scalar<int32_t>(new_axes[k])));
      if (k + 1 == new_axes.size()) return Become(ops::kExpandDims, {x, axis}, expand);
      PF_ASSIGN_OR_RETURN(x, Add(absl::StrCat("expanded_", k), ops::kExpandDims, {x, axis}, expand));
    }
    return absl::OkStatus();
  }

  static bool HasUnitStrides(TensorRef strides) {
    const std::optional<std::vector<int64_t>> values = IntegerVectorConstant(strides);
    return values.has_value() && absl::c_all_of(*values, [](int64_t value) { return value == 1; });
  }

  // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which does not overflow.
  absl::Status Softplus() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const NamedAttrs t = {{"T", FloatType()}};
    const TensorRef x = node_->input(0);
    PF_ASSIGN_OR_RETURN(const TensorRef one, Float("one", 1));
    PF_ASSIGN_OR_RETURN(const TensorRef positive, Add("positive", ops::kRelu, {x}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef size, Add("size", ops::kAbs, {x}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef negative, Add("negative", ops::kNeg, {size}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef power, Add("power", ops::kExp, {negative}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef sum, Add("sum", ops::kAddV2, {power, one}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef rest, Add("rest", ops::kLog, {sum}, t));
    return Become(ops::kAddV2, {positive, rest}, t);
  }

  absl::Status Softsign() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const NamedAttrs t = {{"T", FloatType()}};
    PF_ASSIGN_OR_RETURN(const TensorRef one, Float("one", 1));
    PF_ASSIGN_OR_RETURN(const TensorRef size, Add("size", ops::kAbs, {node_->input(0)}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef sum, Add("sum", ops::kAddV2, {size, one}, t));
    return Become(ops::kRealDiv, {node_->input(0), sum}, t);
  }

  // scale max(x, 0) + scale alpha elu(min(x, 0)).
  absl::Status Selu() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    // The constants of TensorFlow's kernel.
    constexpr float kScale = 1.0507009873554804934193349852946f;
    constexpr float kScaleAlpha = 1.7580993408473768599402175208123f;
    const NamedAttrs t = {{"T", FloatType()}};
    const TensorRef x = node_->input(0);
    PF_ASSIGN_OR_RETURN(const TensorRef scale, Float("scale", kScale));
    PF_ASSIGN_OR_RETURN(const TensorRef scale_alpha, Float("scale_alpha", kScaleAlpha));
    PF_ASSIGN_OR_RETURN(const TensorRef zero, Float("zero", 0));
    PF_ASSIGN_OR_RETURN(const TensorRef positive, Add("positive", ops::kRelu, {x}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef above, Add("above", ops::kMul, {positive, scale}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef negative, Add("negative", ops::kMinimum, {x, zero}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef elu, Add("elu", ops::kElu, {negative}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef below, Add("below", ops::kMul, {elu, scale_alpha}, t));
    return Become(ops::kAddV2, {above, below}, t);
  }

  // A sum of two is an ADD, which takes an activation.
  absl::Status Sum() {
    if (node_->num_data_inputs() != 2) return LimitReached();
    const AttrValue* type = node_->FindAttr("T");
    const absl::StatusOr<DType> dtype = Type();
    if (type == nullptr || !dtype.ok() || (*dtype != DType::kFloat && *dtype != DType::kInt32)) return LimitReached();
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Become(ops::kAddV2, {node_->input(0), node_->input(1)}, {{"T", AttrValue::Type(*dtype)}});
  }

  absl::Status FakeQuant() {
    if (node_->num_data_inputs() != 3) return LimitReached();
    const std::optional<double> least = UniformConstant(node_->input(1)), most = UniformConstant(node_->input(2));
    if (!least.has_value() || !most.has_value()) return Blocked(*node_, "has a range that is not constant");
    PF_ASSIGN_OR_RETURN(const int64_t num_bits, IntAttr(*node_, "num_bits"));
    PF_ASSIGN_OR_RETURN(const bool narrow_range, BoolAttr(*node_, "narrow_range"));
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Become(ops::kFakeQuantWithMinMaxArgs, {node_->input(0)},
                  {{"min", AttrValue::Float(static_cast<float>(*least))},
                   {"max", AttrValue::Float(static_cast<float>(*most))},
                   {"num_bits", AttrValue::Int(num_bits)},
                   {"narrow_range", AttrValue::Bool(narrow_range)}});
  }

  absl::Status NearOne() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const NamedAttrs t = {{"T", FloatType()}};
    const bool is_log = node_->op() == ops::kLog1p;
    PF_ASSIGN_OR_RETURN(const TensorRef one, Float("one", 1));
    PF_ASSIGN_OR_RETURN(const TensorRef inner, is_log ? Add("sum", ops::kAddV2, {node_->input(0), one}, t)
                                                      : Add("power", ops::kExp, {node_->input(0)}, t));
    if (is_log) return Become(ops::kLog, {inner}, t);
    return Become(ops::kSub, {inner, one}, t);
  }

  // Erfc(Mul(Neg(x), c)) is Erfc(Mul(x, -c)), the form of GELU.
  absl::Status NegatedFactor() {
    const TensorRef product = node_->input(0);
    if (!IsFloat() || product.port != 0 || product.node->op() != ops::kMul || product.node->num_data_inputs() != 2) {
      return LimitReached();
    }
    for (const int side : {0, 1}) {
      const TensorRef negated = product.node->input(side), factor = product.node->input(1 - side);
      const std::optional<double> value = UniformConstant(factor);
      if (negated.port != 0 || negated.node->op() != ops::kNeg || negated.node->num_data_inputs() != 1 ||
          !value.has_value() || !KeepsShape(factor))
        continue;
      const RewriteScope rewrite(context_, graph_, {node_, product.node, negated.node});
      if (!rewrite) return LimitReached();
      PF_ASSIGN_OR_RETURN(const TensorRef opposite, Float("factor", static_cast<float>(-*value)));
      PF_ASSIGN_OR_RETURN(const TensorRef scaled,
                          Add("scaled", ops::kMul, {negated.node->input(0), opposite}, {{"T", FloatType()}}));
      return Become(ops::kErfc, {scaled}, {{"T", FloatType()}});
    }
    return LimitReached();
  }

  absl::Status Tangent() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const NamedAttrs t = {{"T", FloatType()}};
    PF_ASSIGN_OR_RETURN(const TensorRef sine, Add("sine", ops::kSin, {node_->input(0)}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef cosine, Add("cosine", ops::kCos, {node_->input(0)}, t));
    return Become(ops::kRealDiv, {sine, cosine}, t);
  }

  // x / y, and 0 where y is 0.
  absl::Status DivNoNan() {
    if (!IsFloat() || node_->num_data_inputs() != 2) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const NamedAttrs t = {{"T", FloatType()}};
    PF_ASSIGN_OR_RETURN(const TensorRef zero, Float("zero", 0));
    PF_ASSIGN_OR_RETURN(const TensorRef divides, Add("divides", ops::kNotEqual, {node_->input(1), zero}, t));
    PF_ASSIGN_OR_RETURN(const TensorRef quotient,
                        Add("quotient", ops::kRealDiv, {node_->input(0), node_->input(1)}, t));
    return Become(ops::kSelectV2, {divides, quotient, zero}, t);
  }

  // x != x.
  absl::Status IsNan() {
    if (!IsFloat()) return Blocked(*node_, "does not compute with float");
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Become(ops::kNotEqual, {node_->input(0), node_->input(0)}, {{"T", FloatType()}});
  }

  // The shape was checked where the graph was made.
  absl::Status EnsureShape() {
    const AttrValue* type = node_->FindAttr("T");
    if (type == nullptr) return Blocked(*node_, "has no attr 'T'");
    const AttrValue t = *type;
    const absl::StatusOr<Shape> declared = ShapeAttr(*node_, "shape");
    const Shape shape = KnownShape(node_->input(0), shapes_);
    if (!declared.ok() || (declared->IsFullyKnown() && !shape.IsFullyKnown())) {
      return Blocked(*node_, "checks a shape that is not known");
    }
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    return Become(ops::kIdentity, {node_->input(0)}, {{"T", t}});
  }

  absl::Status Size() {
    const AttrValue* type = node_->FindAttr("T");
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node_, "out_type"));
    if (type == nullptr) return Blocked(*node_, "has no attr 'T'");
    const AttrValue t = *type, out = AttrValue::Type(dtype), int32 = AttrValue::Type(DType::kInt32);
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef shape,
                        Add("shape", ops::kShape, {node_->input(0)}, {{"T", t}, {"out_type", out}}));
    PF_ASSIGN_OR_RETURN(const TensorRef axis, Ints("axis", Shape({1}), {0}));
    return Become(ops::kProd, {shape, axis}, {{"T", out}, {"Tidx", int32}, {"keep_dims", AttrValue::Bool(false)}});
  }

  // The band of matrices of known size.
  absl::Status Band() {
    if (node_->num_data_inputs() != 3) return LimitReached();
    const AttrValue* type = node_->FindAttr("T");
    const std::optional<std::vector<int64_t>> lower = IntegerConstant(node_->input(1));
    const std::optional<std::vector<int64_t>> upper = IntegerConstant(node_->input(2));
    const Shape shape = KnownShape(node_->input(0), shapes_);
    if (type == nullptr || !lower.has_value() || !upper.has_value() || lower->size() != 1 || upper->size() != 1) {
      return Blocked(*node_, "has a band that is not constant");
    }
    constexpr int64_t kMostElements = int64_t{1} << 24;
    if (!shape.has_rank() || shape.rank() < 2 || shape.dim(shape.rank() - 1) < 0 || shape.dim(shape.rank() - 2) < 0 ||
        shape.dim(shape.rank() - 1) > kMostElements || shape.dim(shape.rank() - 2) > kMostElements ||
        shape.dim(shape.rank() - 1) * shape.dim(shape.rank() - 2) > kMostElements) {
      return Blocked(*node_, absl::StrCat("has matrices of shape ", shape.ToString()));
    }
    const absl::StatusOr<DType> dtype = Type();
    if (!dtype.ok() || *dtype == DType::kString || SizeOf(*dtype) == 0) return Blocked(*node_, "has no numbers");
    const AttrValue t = *type;
    const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    char* data = nullptr;
    PF_ASSIGN_OR_RETURN(Tensor mask, Tensor::Allocate(DType::kBool, Shape({rows, columns}), &data));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < columns; ++k) {
        const bool is_in = ((*lower)[0] < 0 || i - k <= (*lower)[0]) && ((*upper)[0] < 0 || k - i <= (*upper)[0]);
        data[i * columns + k] = is_in ? 1 : 0;
      }
    }
    PF_ASSIGN_OR_RETURN(const TensorRef band, Const("band", std::move(mask)));
    PF_ASSIGN_OR_RETURN(Tensor zero_value, Tensor::Allocate(*dtype, Shape(), &data));
    std::fill_n(data, SizeOf(*dtype), '\0');
    PF_ASSIGN_OR_RETURN(const TensorRef zero, Const("zero", std::move(zero_value)));
    return Become(ops::kSelectV2, {band, node_->input(0), zero}, {{"T", t}});
  }

  // The transform of rows is that of images with one row.
  absl::Status Rfft() {
    if (node_->num_data_inputs() != 2) return LimitReached();
    const std::optional<std::vector<int64_t>> length = IntegerVectorConstant(node_->input(1));
    const absl::StatusOr<DType> real = TypeAttr(*node_, "Treal");
    const bool is_power = length.has_value() && length->size() == 1 && (*length)[0] > 0 &&
                          ((*length)[0] & ((*length)[0] - 1)) == 0 &&
                          (*length)[0] <= std::numeric_limits<int32_t>::max();
    if (!real.ok() || *real != DType::kFloat || !is_power) {
      return Blocked(*node_, "has a length that is not a constant power of two, or numbers other than float");
    }
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    const AttrValue complex = AttrValue::Type(DType::kComplex64), int32 = AttrValue::Type(DType::kInt32);
    PF_ASSIGN_OR_RETURN(const TensorRef axis, Const("axis", Tensor::Scalar<int32_t>(-2)));
    PF_ASSIGN_OR_RETURN(const TensorRef image,
                        Add("image", ops::kExpandDims, {node_->input(0), axis}, {{"T", FloatType()}, {"Tdim", int32}}));
    PF_ASSIGN_OR_RETURN(const TensorRef size, Ints("size", Shape({2}), {1, static_cast<int32_t>((*length)[0])}));
    PF_ASSIGN_OR_RETURN(const TensorRef spectrum,
                        Add("spectrum", ops::kRFFT2D, {image, size}, {{"Tcomplex", complex}, {"Treal", FloatType()}}));
    return Become(ops::kSqueeze, {spectrum}, {{"T", complex}, {"squeeze_dims", AttrValue::IntList({-2})}});
  }

  absl::Status AssignSum() {
    const AttrValue* type = node_->FindAttr("dtype");
    if (type == nullptr || node_->num_data_inputs() != 2) return Blocked(*node_, "has no attr 'dtype'");
    const AttrValue t = *type;
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef value, Add("value", ops::kReadVariableOp, {node_->input(0)}, {{"dtype", t}}));
    // The variable is read after everything that the assignment follows.
    for (int i = node_->num_data_inputs(); i < node_->num_inputs(); ++i) {
      graph_->AddControlInput(value.node, node_->input(i).node);
    }
    const Op op = node_->op() == ops::kAssignAddVariableOp ? ops::kAddV2 : ops::kSub;
    PF_ASSIGN_OR_RETURN(const TensorRef sum, Add("sum", op, {value, node_->input(1)}, {{"T", t}}));
    return Become(ops::kAssignVariableOp, {node_->input(0), sum}, {{"dtype", t}});
  }

  // A branch decides by a bool.
  absl::Status Condition() {
    PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*node_, "Tcond"));
    if (dtype == DType::kBool) return LimitReached();
    const Shape shape = KnownShape(node_->input(0), shapes_);
    if (!IsBoolLike(dtype) || !shape.has_rank() || shape.rank() != 0) {
      return Blocked(*node_, absl::StrCat("decides by ", DTypeName(dtype), " of shape ", shape.ToString()));
    }
    const RewriteScope rewrite(context_, graph_, {node_});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef is_true, AsBool(graph_, node_, node_->input(0), dtype, nullptr));
    graph_->SetInput(node_, 0, is_true);
    node_->SetAttr("Tcond", AttrValue::Type(DType::kBool));
    return absl::OkStatus();
  }

  const ShapeMap* shapes_;
  PassContext* context_;
  std::vector<Node*>* maybe_unread_;
};

absl::StatusOr<int64_t> Lower(Graph* graph, const NoParams&, PassContext* context) {
  int64_t rewrites = 0;
  std::vector<Node*> maybe_unread;
  // Nodes that a rewrite adds are visited in the next round. Predecessors are visited first, so that the result does
  // not depend on the order of the file.
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    context->misses.clear();  // Only the misses of the last round count.
    const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
    const absl::StatusOr<std::vector<Node*>> order = StableTopologicalOrder(*graph);
    for (Node* node : order.ok() ? *order : graph->Nodes()) {
      Lowering lowering(graph, node, shapes.ok() ? &*shapes : nullptr, context, &maybe_unread);
      PF_ASSIGN_OR_RETURN(const bool is_rewritten, IsRewritten(lowering.Run(), *node, context));
      rewrites += is_rewritten ? 1 : 0;
      is_changed |= is_rewritten;
    }
  }
  std::vector<bool> is_listed(graph->id_limit(), false);
  std::vector<Node*> unread;
  for (Node* node : maybe_unread) {
    if (!is_listed[node->id()]) unread.push_back(node);
    is_listed[node->id()] = true;
  }
  PF_RETURN_IF_ERROR(RemoveUnread(graph, std::move(unread)).status());
  if (rewrites > 0) context->Note(absl::StrCat("lowered ", rewrites, " nodes"));
  return rewrites;
}

}  // namespace

// Rewrites ops without an operator in TensorFlow Lite as ops that it has, and spellings of an activation as the op.
//
//   Conv2D(x, w) with padding EXPLICIT        =>   Conv2D(Pad(x), w) with padding VALID; also depthwise and MaxPool
//   Conv2D(x, w) in NCHW                      =>   Transpose(Conv2D(Transpose(x), w)) in NHWC; also pools
//   FusedBatchNormV3(x, constants)            =>   AddV2(Mul(x, scale), offset)
//   Minimum(Relu(x), 6), Maximum(Relu6(x), 0) =>   Relu6(x)
//   Maximum(x, Mul(x, a)), a from 0 to 1      =>   LeakyRelu(x)
//   ClipByValue, Reciprocal, Softplus,
//   Softsign, Selu, AddN of two               =>   elementwise ops
//   MatMul with transpose_a                   =>   MatMul(Transpose(x), w)
//   MatMul of an integer column and a row     =>   Mul
//   StridedSlice with ellipsis or new axes    =>   ExpandDims(StridedSlice(x)) with one entry for each dimension
//   FakeQuantWithMinMaxVars with constants    =>   FakeQuantWithMinMaxArgs
//   Expm1, Log1p, Tan, DivNoNan, IsNan        =>   elementwise ops
//   Erfc(Mul(Neg(x), c))                      =>   Erfc(Mul(x, -c)), as in GELU
//   Size(x)                                   =>   Prod(Shape(x))
//   MatrixBandPart(x) of known size           =>   SelectV2(mask, x, 0)
//   RFFT(x) of a power of two                 =>   Squeeze(RFFT2D(ExpandDims(x)))
//   EnsureShape(x) of a known shape           =>   x
//   AssignAddVariableOp, AssignSubVariableOp  =>   AssignVariableOp of the sum
//   If of a number                            =>   If of NotEqual(number, 0)
//
// The preset prepare_for_tflite runs it among other passes; writing a .tflite file runs the preset. Leaves unchanged
// batch norms that are not constant, types other than float, and other ops in NCHW.
DEFINE_PASS(lower_to_tflite) {
  return Pass<NoParams>("Rewrites ops that TensorFlow Lite does not have.")
      .Why("The writer of .tflite files maps nodes to operators and computes nothing itself.")
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Lower);
}

}  // namespace permafrost
