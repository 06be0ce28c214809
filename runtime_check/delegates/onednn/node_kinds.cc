// Parses nodes: attributes, shapes, and TensorFlow semantics that the pieces do not support.
#include "runtime_check/delegates/onednn/node_kinds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

absl::Status No(std::string reason) { return absl::UnimplementedError(std::move(reason)); }

class Reader {
 public:
  Reader(const Partition& partition, const DelegateNode& node)
      : partition_(partition), from_(node), node_(*node.node) {}

  absl::StatusOr<ParsedNode> Read() {
    PF_RETURN_IF_ERROR(CheckTensors());
    PF_RETURN_IF_ERROR(ReadOp().status());
    if (HasOneDataInput()) {
      const int data = parsed_.kind == NodeKind::kElementwise ? parsed_.left : parsed_.data;
      if (In(data).constant.has_value()) return No("its data input is constant");
      if (In(data).dtype != DType::kFloat) return No(absl::StrCat("its input is ", DTypeName(In(data).dtype)));
    }
    if (parsed_.kind == NodeKind::kView) return parsed_;
    for (size_t i = 1; i < from_.outputs.size(); ++i) {
      const int output = from_.outputs[i];
      if (std::find(partition_.outputs.begin(), partition_.outputs.end(), output) != partition_.outputs.end()) {
        return No(absl::StrCat("its output ", i, " is read"));
      }
    }
    return parsed_;
  }

 private:
  absl::StatusOr<ParsedNode> ReadOp() {
    const Op op = node_.op();
    switch (op.id()) {
      case ops::kIdentity:
      case ops::kStopGradient:
      case ops::kPreventGradient:
      case ops::kReshape:
      case ops::kSqueeze:
      case ops::kExpandDims:
        return parsed_;
      case ops::kRelu:
        return Unary(LoopOp::kRelu);
      case ops::kRelu6:
        return Unary(LoopOp::kClip, 0, 6);
      case ops::kElu:
        return Unary(LoopOp::kElu, 1);
      case ops::kLeakyRelu:
        return LeakyRelu();
      case ops::kSigmoid:
        return Unary(LoopOp::kSigmoid);
      case ops::kTanh:
        return Unary(LoopOp::kTanh);
      case ops::kExp:
        return Unary(LoopOp::kExp);
      case ops::kErf:
        return Unary(LoopOp::kErf);
      case ops::kErfc:
        return Unary(LoopOp::kErfc);
      case ops::kPow:
        return Pow();
      case ops::kAbs:
        return Unary(LoopOp::kAbs);
      case ops::kNeg:
        return Unary(LoopOp::kNeg);
      case ops::kSquare:
        return Unary(LoopOp::kSquare);
      case ops::kSqrt:
        return Unary(LoopOp::kSqrt);
      case ops::kRsqrt:
        return Unary(LoopOp::kRsqrt);
      case ops::kReciprocal:
        return Unary(LoopOp::kReciprocal);
      case ops::kBiasAdd:
        return BiasAdd();
      case ops::kAdd:
      case ops::kAddV2:
        return Binary(LoopOp::kAdd);
      case ops::kAddN:
        return AddN();
      case ops::kSub:
        return Binary(LoopOp::kSub);
      case ops::kMul:
        return Binary(LoopOp::kMul);
      case ops::kRealDiv:
      case ops::kDiv:
        return Binary(LoopOp::kDiv);
      case ops::kMaximum:
        return Binary(LoopOp::kMax);
      case ops::kMinimum:
        return Binary(LoopOp::kMin);
      case ops::kSquaredDifference:
        return Binary(LoopOp::kSquaredDifference);
      case ops::kConv2D:
      case ops::k_FusedConv2D:
        return Convolution(false);
      case ops::kDepthwiseConv2dNative:
      case ops::k_FusedDepthwiseConv2dNative:
        return Convolution(true);
      case ops::kConv2DBackpropInput:
        return TransposedConvolution();
      case ops::kMatMul:
      case ops::k_FusedMatMul:
        return MatMul();
      case ops::kMaxPool:
        return Pool(false);
      case ops::kAvgPool:
        return Pool(true);
      case ops::kBatchMatMul:
      case ops::kBatchMatMulV2:
      case ops::kBatchMatMulV3:
      case ops::kEinsum:
        return Contract();
      case ops::kMean:
        return Reduce(true);
      case ops::kSum:
        return Reduce(false);
      case ops::kConcatV2:
        return Concat();
      case ops::kPack:
        return Pack();
      case ops::kSelect:
      case ops::kSelectV2:
        return Select();
      case ops::kGather:
      case ops::kGatherV2:
        return Gather();
      case ops::kTranspose:
        return Transpose();
      case ops::kTile:
        return Tile();
      case ops::kBroadcastTo:
        parsed_.kind = NodeKind::kView;
        parsed_.views.push_back({0, BroadcastStrides(In(0).shape, Out(0).shape)});
        return parsed_;
      case ops::kSlice:
        return Slice();
      case ops::kStridedSlice:
        return StridedSlice();
      case ops::kSplit:
      case ops::kSplitV:
        return Split();
      case ops::kUnpack:
        return Unpack();
      case ops::kPad:
      case ops::kPadV2:
        return Pad();
      case ops::kResizeBilinear:
        return Resize(true);
      case ops::kResizeNearestNeighbor:
        return Resize(false);
      case ops::kSoftmax:
        return Softmax();
      case ops::kFusedBatchNorm:
      case ops::kFusedBatchNormV2:
      case ops::kFusedBatchNormV3:
        return BatchNorm();
      default:
        return No("it is not implemented by this delegate");
    }
  }

  const DelegateTensor& In(int i) const { return partition_.tensors[from_.inputs[i]]; }
  const DelegateTensor& Out(int i) const { return partition_.tensors[from_.outputs[i]]; }

  absl::Status CheckTensors() const {
    if (from_.outputs.empty() || from_.inputs.empty()) return No("it has no inputs or no outputs");
    if (Out(0).dtype != DType::kFloat) {
      return No(absl::StrCat("its type is ", DTypeName(Out(0).dtype), ", expected float"));
    }
    for (const int output : from_.outputs) {
      if (partition_.tensors[output].shape.num_elements() == 0) return No("it has an empty output");
    }
    for (const int input : from_.inputs) {
      if (partition_.tensors[input].shape.num_elements() == 0) return No("it has an empty input");
    }
    return absl::OkStatus();
  }

  bool HasOneDataInput() const {
    switch (parsed_.kind) {
      case NodeKind::kBroadcast:
      case NodeKind::kSelect:
      case NodeKind::kGather:
      case NodeKind::kProduct:
        return false;
      default:
        return true;
    }
  }

  absl::Status ReadLayout() {
    PF_ASSIGN_OR_RETURN(layout_, ReadImageLayout(node_));
    parsed_.is_channels_first = layout_.is_nchw() && Out(0).shape.rank() > 2;
    if (parsed_.is_channels_first && Out(0).shape.rank() != 4) return No("data_format is NCHW, and the rank is not 4");
    return absl::OkStatus();
  }

  // Returns the shape of an image as [N, H, W, C].
  Shape ImageShape(const Shape& shape) const {
    if (!parsed_.is_channels_first) return shape;
    return {shape.dim(0), shape.dim(2), shape.dim(3), shape.dim(1)};
  }

  absl::StatusOr<ParsedNode> Unary(LoopOp op, float alpha = 0, float beta = 0) {
    parsed_.kind = NodeKind::kElementwise;
    parsed_.loop = op;
    parsed_.alpha = alpha;
    parsed_.beta = beta;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> LeakyRelu() {
    PF_ASSIGN_OR_RETURN(const float alpha, FloatAttr(node_, "alpha"));
    return Unary(LoopOp::kLeakyRelu, alpha);
  }

  static bool IsCommutative(LoopOp op) { return op != LoopOp::kSub && op != LoopOp::kDiv; }

  // Returns how an operand of shape `b` is broadcast to one of shape `a`, if the result has the shape of `a`.
  static std::optional<Meeting> MeetingOf(const Shape& a, const Shape& b, bool is_constant) {
    if (a == b && !(is_constant && a.rank() <= 1)) return Meeting::kSame;
    if (b.num_elements() == 1) return Meeting::kScalar;
    const int shift = a.rank() - b.rank();
    if (shift < 0 || a.rank() == 0) return std::nullopt;
    const auto dim = [&](int i) { return i < shift ? int64_t{1} : b.dim(i - shift); };
    const int last = a.rank() - 1;
    bool leading_ones = true, leading_same = true, middle_ones = true;
    for (int i = 0; i < last; ++i) {
      leading_ones &= dim(i) == 1;
      leading_same &= dim(i) == a.dim(i);
      if (i > 0) middle_ones &= dim(i) == 1;
    }
    const bool same_channels = dim(last) == a.dim(last);
    // A constant for one row is equivalent to one value per channel, and can be folded into a bias.
    if (leading_ones && same_channels && is_constant) return Meeting::kPerChannel;
    if (leading_same && same_channels) return Meeting::kSame;
    if (leading_ones && same_channels) return Meeting::kPerChannel;
    if (leading_same && dim(last) == 1) return Meeting::kPerRow;
    if (a.rank() >= 2 && dim(0) == a.dim(0) && middle_ones && same_channels) return Meeting::kPerImage;
    return std::nullopt;
  }

  // Returns the number of elements of `b` if its dimensions are the last ones of `a`, else 0.
  static int64_t ElementsOfSuffix(const Shape& a, const Shape& b) {
    // A loop nest has a block of at least one row of channels for each operand, which has to stay in the L1 cache.
    constexpr int64_t kMostChannels = 4096;
    const int shift = a.rank() - b.rank();
    int begin = a.rank();
    while (begin > 0 && begin > shift && b.dim(begin - 1 - shift) == a.dim(begin - 1)) --begin;
    for (int i = shift; i < begin; ++i) {
      if (b.dim(i - shift) != 1) return 0;
    }
    return b.num_elements() <= kMostChannels ? b.num_elements() : 0;
  }

  absl::StatusOr<ParsedNode> Binary(LoopOp op) {
    parsed_.kind = NodeKind::kElementwise;
    parsed_.loop = op;
    parsed_.left = 0;
    parsed_.right = 1;
    const bool left_fits = In(0).shape.num_elements() == Out(0).shape.num_elements() && !In(0).constant.has_value();
    const bool right_fits = In(1).shape.num_elements() == Out(0).shape.num_elements() && !In(1).constant.has_value();
    if (!left_fits) {
      if (!right_fits) return Broadcast(op);
      // c - x is -x + c.
      if (op == LoopOp::kSub && In(0).constant.has_value() && In(0).shape.num_elements() == 1) {
        parsed_.left = 1;
        parsed_.right = -1;
        parsed_.loop = LoopOp::kAffine;
        parsed_.alpha = -1;
        parsed_.beta = FloatsOf(*In(0).constant)[0];
        return parsed_;
      }
      if (!IsCommutative(op)) return Broadcast(op);
      std::swap(parsed_.left, parsed_.right);
    }
    const std::optional<Meeting> meeting =
        MeetingOf(In(parsed_.left).shape, In(parsed_.right).shape, In(parsed_.right).constant.has_value());
    if (!meeting.has_value()) {
      parsed_.channels = ElementsOfSuffix(In(parsed_.left).shape, In(parsed_.right).shape);
      if (parsed_.channels == 0) return Broadcast(op);
      parsed_.meeting = Meeting::kPerChannel;
      return parsed_;
    }
    parsed_.meeting = *meeting;
    if (parsed_.meeting == Meeting::kScalar && In(parsed_.right).constant.has_value()) {
      return WithNumber(op, FloatsOf(*In(parsed_.right).constant)[0]);
    }
    return parsed_;
  }

  // Sets the strides with which the inputs are broadcast to the result. NumPy's rules give the shape of the result.
  absl::Status BroadcastInputs(int count) {
    const Shape& result = Out(0).shape;
    for (int i = 0; i < count; ++i) {
      const absl::StatusOr<Shape> shape = BroadcastShapes(In(i).shape, result);
      if (!shape.ok() || *shape != result) {
        return No(absl::StrCat("operand ", i, " of shape ", In(i).shape.ToString(), " is not broadcast as in NumPy"));
      }
      parsed_.strides.push_back(BroadcastStrides(In(i).shape, result));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ParsedNode> Broadcast(LoopOp op) {
    parsed_ = ParsedNode();
    parsed_.kind = NodeKind::kBroadcast;
    parsed_.loop = op;
    parsed_.right = 1;
    PF_RETURN_IF_ERROR(BroadcastInputs(2));
    return parsed_;
  }

  absl::StatusOr<ParsedNode> BiasAdd() {
    PF_RETURN_IF_ERROR(ReadLayout());
    if (!parsed_.is_channels_first) return Binary(LoopOp::kAdd);
    parsed_.kind = NodeKind::kElementwise;
    parsed_.loop = LoopOp::kAdd;
    parsed_.right = 1;
    parsed_.meeting = Meeting::kPerChannel;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Pow() {
    if (!In(1).constant.has_value() || In(1).shape.num_elements() != 1) return No("its exponent is no constant number");
    const float exponent = FloatsOf(*In(1).constant)[0];
    if (In(0).shape != Out(0).shape) return No("its exponent changes the shape");
    if (exponent == 2) return Unary(LoopOp::kSquare);
    if (exponent == 3) return Unary(LoopOp::kCube);
    return No("its exponent is not 2 or 3");
  }

  absl::StatusOr<ParsedNode> WithNumber(LoopOp op, float number) {
    const int left = parsed_.left;
    parsed_.right = -1;
    parsed_.meeting = Meeting::kSame;
    parsed_.loop = LoopOp::kAffine;
    parsed_.alpha = 1;
    parsed_.beta = 0;
    switch (op) {
      case LoopOp::kAdd:
        parsed_.beta = number;
        break;
      case LoopOp::kSub:
        parsed_.beta = -number;
        break;
      case LoopOp::kMul:
        parsed_.alpha = number;
        break;
      case LoopOp::kDiv:
        parsed_.alpha = 1.0f / number;
        break;
      case LoopOp::kMax:
      case LoopOp::kMin:
        if (std::isnan(number)) return No("one operand is NaN");
        parsed_.loop = LoopOp::kClip;
        parsed_.alpha = op == LoopOp::kMax ? number : -kInfinity;
        parsed_.beta = op == LoopOp::kMin ? number : kInfinity;
        break;
      default:
        return Broadcast(op);
    }
    parsed_.left = left;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> AddN() {
    if (from_.inputs.size() == 1) return parsed_;
    if (from_.inputs.size() > 2) return No("it adds more than two tensors");
    return Binary(LoopOp::kAdd);
  }

  absl::Status CheckConstant(int i, int rank) const {
    if (!In(i).constant.has_value()) return No(absl::StrCat("input ", i, " is not constant"));
    if (In(i).dtype != DType::kFloat || In(i).shape.rank() != rank) {
      return No(absl::StrCat("input ", i, " is ", DTypeName(In(i).dtype), " ", In(i).shape.ToString()));
    }
    return absl::OkStatus();
  }

  // Reads what a _Fused op adds: a bias, which is input 2, and an activation.
  absl::Status ReadPostOps() {
    if (node_.op() != ops::k_FusedConv2D && node_.op() != ops::k_FusedDepthwiseConv2dNative &&
        node_.op() != ops::k_FusedMatMul) {
      return absl::OkStatus();
    }
    PF_ASSIGN_OR_RETURN(const std::vector<std::string> names, StringListAttr(node_, "fused_ops"));
    if (names.empty() || names.size() > 2 || names[0] != "BiasAdd") {
      return No(absl::StrCat("fused_ops is '", absl::StrJoin(names, ","), "'"));
    }
    PF_RETURN_IF_ERROR(CheckConstant(2, 1));
    parsed_.has_bias = true;
    if (names.size() == 1) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(parsed_.activation_alpha, FloatAttr(node_, "leakyrelu_alpha"));
    const std::string& name = names[1];
    if (name == "Relu")
      parsed_.activation = PostActivation::kRelu;
    else if (name == "Relu6")
      parsed_.activation = PostActivation::kRelu6;
    else if (name == "Elu")
      parsed_.activation = PostActivation::kElu;
    else if (name == "LeakyRelu")
      parsed_.activation = PostActivation::kLeakyRelu;
    else if (name == "Tanh")
      parsed_.activation = PostActivation::kTanh;
    else if (name == "Sigmoid")
      parsed_.activation = PostActivation::kSigmoid;
    else
      return No(absl::StrCat("fused_ops is '", absl::StrJoin(names, ","), "'"));
    return absl::OkStatus();
  }

  absl::StatusOr<ParsedNode> Convolution(bool is_depthwise) {
    parsed_.kind = NodeKind::kConvolution;
    PF_RETURN_IF_ERROR(CheckConstant(1, 4));
    PF_RETURN_IF_ERROR(ReadLayout());
    PF_RETURN_IF_ERROR(ReadPostOps());
    const Shape image = ImageShape(In(0).shape);
    const Shape& filter = In(1).shape;
    PF_ASSIGN_OR_RETURN(const Window window,
                        ReadWindow(node_, layout_, {filter.dim(0), filter.dim(1)}, image.dim(1), image.dim(2)));
    parsed_.window = {image.dim(0),
                      image.dim(1),
                      image.dim(2),
                      image.dim(3),
                      ImageShape(Out(0).shape).dim(3),
                      window.y,
                      window.x,
                      is_depthwise ? image.dim(3) : image.dim(3) / filter.dim(2)};
    return parsed_;
  }

  absl::StatusOr<ParsedNode> TransposedConvolution() {
    parsed_.kind = NodeKind::kTransposedConvolution;
    parsed_.data = 2;
    PF_RETURN_IF_ERROR(CheckConstant(1, 4));
    PF_RETURN_IF_ERROR(ReadLayout());
    const Shape image = ImageShape(Out(0).shape);
    const Shape& filter = In(1).shape;
    PF_ASSIGN_OR_RETURN(const Window window,
                        ReadWindow(node_, layout_, {filter.dim(0), filter.dim(1)}, image.dim(1), image.dim(2)));
    if (filter.dim(2) != image.dim(3)) return No("it has groups of channels");
    // The window is that of the convolution from the result to the input, whose transpose the node computes.
    parsed_.window = {image.dim(0), image.dim(1), image.dim(2), ImageShape(In(2).shape).dim(3),
                      image.dim(3), window.y,     window.x,     1};
    return parsed_;
  }

  absl::StatusOr<ParsedNode> MatMul() {
    PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(node_, "transpose_a"));
    PF_ASSIGN_OR_RETURN(const bool transpose_b, BoolAttr(node_, "transpose_b"));
    if (node_.op() == ops::kMatMul && (transpose_a || !In(1).constant.has_value())) {
      PF_ASSIGN_OR_RETURN(parsed_.contraction,
                          MatrixContraction(In(0).shape, transpose_a, In(1).shape, transpose_b, Out(0).shape));
      return Multiply();
    }
    parsed_.kind = NodeKind::kMatMul;
    PF_RETURN_IF_ERROR(CheckConstant(1, 2));
    PF_RETURN_IF_ERROR(ReadPostOps());
    parsed_.transpose_b = transpose_b;
    if (transpose_a) return No("the left matrix is transposed");
    if (In(0).shape.rank() != 2) return No("the left operand is not a matrix");
    parsed_.rows = In(0).shape.dim(0);
    parsed_.depth = In(0).shape.dim(1);
    parsed_.columns = Out(0).shape.dim(1);
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Contract() {
    if (from_.inputs.size() != 2) return No(absl::StrCat("it has ", from_.inputs.size(), " operands, expected 2"));
    if (node_.op() == ops::kEinsum) {
      PF_ASSIGN_OR_RETURN(const std::string equation, StringAttr(node_, "equation"));
      PF_ASSIGN_OR_RETURN(parsed_.contraction, EinsumContraction(equation, In(0).shape, In(1).shape, Out(0).shape));
      return Multiply();
    }
    PF_ASSIGN_OR_RETURN(const bool adj_x, BoolAttr(node_, "adj_x"));
    PF_ASSIGN_OR_RETURN(const bool adj_y, BoolAttr(node_, "adj_y"));
    PF_ASSIGN_OR_RETURN(parsed_.contraction, MatrixContraction(In(0).shape, adj_x, In(1).shape, adj_y, Out(0).shape));
    return Multiply();
  }

  // Reads parsed_.contraction: a product of packed weights if one operand is constant and its layout allows it.
  absl::StatusOr<ParsedNode> Multiply() {
    for (int i = 0; i < 2; ++i) {
      if (In(i).dtype != DType::kFloat) return No(absl::StrCat("its input is ", DTypeName(In(i).dtype)));
    }
    PF_ASSIGN_OR_RETURN(const Product product, ProductOf(parsed_.contraction));
    const bool is_of_rows = product.batches.empty() && (product.rows == 1 || product.row_a == product.depth) &&
                            (product.depth == 1 || product.depth_a == 1) &&
                            (product.rows == 1 || product.row_c == product.columns) &&
                            (product.columns == 1 || product.column_c == 1);
    const bool is_plain =
        (product.columns == 1 || product.column_b == 1) && (product.depth == 1 || product.depth_b == product.columns);
    const bool is_transposed =
        (product.depth == 1 || product.depth_b == 1) && (product.columns == 1 || product.column_b == product.depth);
    const bool is_weighted = In(product.right).constant.has_value() && is_of_rows && (is_plain || is_transposed);
    parsed_.kind = is_weighted ? NodeKind::kMatMul : NodeKind::kProduct;
    if (!is_weighted) {
      parsed_.product = product;
      return parsed_;
    }
    parsed_.data = product.left;
    parsed_.weights = product.right;
    parsed_.rows = product.rows;
    parsed_.depth = product.depth;
    parsed_.columns = product.columns;
    parsed_.transpose_b = !is_plain;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Pool(bool is_average) {
    parsed_.kind = NodeKind::kPool;
    parsed_.is_average = is_average;
    PF_RETURN_IF_ERROR(ReadLayout());
    PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(node_, layout_));
    const Shape image = ImageShape(In(0).shape);
    PF_ASSIGN_OR_RETURN(const Window window, ReadWindow(node_, layout_, kernel, image.dim(1), image.dim(2)));
    parsed_.window = {image.dim(0), image.dim(1), image.dim(2), image.dim(3), image.dim(3), window.y, window.x, 1};
    return parsed_;
  }

  // Returns the elements of an integer constant.
  absl::StatusOr<std::vector<int64_t>> Integers(int i, absl::string_view what) const {
    if (!In(i).constant.has_value()) return No(absl::StrCat(what, " is not constant"));
    absl::StatusOr<std::vector<int64_t>> values = IntegerValues(*In(i).constant);
    if (!values.ok()) return No(absl::StrCat(what, " is ", DTypeName(In(i).dtype)));
    return values;
  }

  absl::StatusOr<int64_t> AxisFrom(int64_t axis, int rank) const {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return No("its axis is out of bounds");
    return axis;
  }

  absl::StatusOr<ParsedNode> Reduce(bool is_mean) {
    parsed_.kind = NodeKind::kReduce;
    parsed_.is_mean = is_mean;
    const Shape& shape = In(0).shape;
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Integers(1, "the list of its axes"));
    std::vector<bool> is_reduced(static_cast<size_t>(shape.rank()), false);
    for (const int64_t given : axes) {
      PF_ASSIGN_OR_RETURN(const int64_t axis, AxisFrom(given, shape.rank()));
      is_reduced[axis] = true;
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape.dim(d) == 1) continue;
      if (is_reduced[d]) {
        (parsed_.inner == 1 ? parsed_.reduced : parsed_.reduced_last) *= shape.dim(d);
      } else if (parsed_.reduced_last > 1) {
        return No("it reduces more than two groups of dimensions");
      } else {
        (parsed_.reduced == 1 ? parsed_.outer : parsed_.inner) *= shape.dim(d);
      }
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Concat() {
    parsed_.kind = NodeKind::kConcat;
    parsed_.num_values = static_cast<int>(from_.inputs.size()) - 1;
    const DelegateTensor& axis = In(parsed_.num_values);
    if (!axis.constant.has_value() || axis.dtype != DType::kInt32) return No("its axis is not an int32 constant");
    parsed_.axis = UnalignedSpan<int32_t>(axis.constant->bytes().data(), 1)[0];
    if (parsed_.axis < 0) parsed_.axis += Out(0).shape.rank();
    for (int i = 0; i < parsed_.num_values; ++i) {
      if (In(i).constant.has_value()) return No("it concatenates a constant");
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Pack() {
    parsed_.kind = NodeKind::kConcat;
    parsed_.num_values = static_cast<int>(from_.inputs.size());
    PF_ASSIGN_OR_RETURN(const int64_t given, IntAttr(node_, "axis"));
    PF_ASSIGN_OR_RETURN(const int64_t axis, AxisFrom(given, Out(0).shape.rank()));
    parsed_.axis = static_cast<int>(axis);
    for (int i = 0; i < parsed_.num_values; ++i) {
      if (In(i).constant.has_value()) return No("it concatenates a constant");
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Select() {
    parsed_.kind = NodeKind::kSelect;
    if (In(0).constant.has_value()) return No("its condition is constant");
    if (In(0).dtype != DType::kBool) return No(absl::StrCat("its condition is ", DTypeName(In(0).dtype)));
    if (node_.op() == ops::kSelect && In(0).shape != Out(0).shape && In(0).shape.rank() != 0) {
      return No("its condition selects slices");
    }
    PF_RETURN_IF_ERROR(BroadcastInputs(3));
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Gather() {
    parsed_.kind = NodeKind::kGather;
    const Shape& table = In(0).shape;
    int64_t axis = 0;
    if (node_.op() == ops::kGatherV2) {
      PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Integers(2, "its axis"));
      PF_ASSIGN_OR_RETURN(axis, AxisFrom(axes.empty() ? 0 : axes[0], table.rank()));
      PF_ASSIGN_OR_RETURN(const int64_t batch_dims, IntAttr(node_, "batch_dims"));
      if (batch_dims != 0) return No("it has batch dimensions");
    }
    if (table.rank() == 0) return No("its table is a scalar");
    const DType dtype = In(1).dtype;
    if (dtype != DType::kInt32 && dtype != DType::kInt64) return No(absl::StrCat("its indices are ", DTypeName(dtype)));
    if (In(1).constant.has_value()) return No("its indices are constant");
    for (int d = 0; d < table.rank(); ++d) {
      (d < axis ? parsed_.outer : d == axis ? parsed_.reduced : parsed_.inner) *= table.dim(d);
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Transpose() {
    parsed_.kind = NodeKind::kView;
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> order, Integers(1, "its permutation"));
    const std::vector<int64_t> strides = RowMajorStrides(In(0).shape);
    StridedView& view = parsed_.views.emplace_back();
    for (const int64_t given : order) {
      PF_ASSIGN_OR_RETURN(const int64_t axis, AxisFrom(given, In(0).shape.rank()));
      view.strides.push_back(strides[axis]);
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Tile() {
    parsed_.kind = NodeKind::kView;
    const Shape& shape = In(0).shape;
    StridedView& view = parsed_.views.emplace_back();
    view.strides = RowMajorStrides(shape);
    for (int d = 0; d < shape.rank(); ++d) {
      if (Out(0).shape.dim(d) == shape.dim(d)) continue;
      if (shape.dim(d) != 1) return No("it repeats a dimension of several elements");
      view.strides[d] = 0;
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Slice() {
    parsed_.kind = NodeKind::kView;
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, Integers(1, "the start of its slice"));
    StridedView& view = parsed_.views.emplace_back();
    view.strides = RowMajorStrides(In(0).shape);
    for (size_t d = 0; d < begin.size(); ++d) view.offset += begin[d] * view.strides[d];
    return parsed_;
  }

  absl::StatusOr<ParsedNode> StridedSlice() {
    parsed_.kind = NodeKind::kView;
    const Shape& shape = In(0).shape;
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, Integers(1, "the start of its slice"));
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Integers(3, "the list of its steps"));
    PF_ASSIGN_OR_RETURN(const int64_t begin_mask, IntAttr(node_, "begin_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t ellipsis_mask, IntAttr(node_, "ellipsis_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t new_axis_mask, IntAttr(node_, "new_axis_mask"));
    PF_ASSIGN_OR_RETURN(const int64_t shrink_axis_mask, IntAttr(node_, "shrink_axis_mask"));
    const auto has = [](int64_t mask, size_t i) { return i < 32 && ((mask >> i) & 1) != 0; };
    // The reference kernel has checked all bounds, and the result is not empty.
    const std::vector<int64_t> own = RowMajorStrides(shape);
    StridedView& view = parsed_.views.emplace_back();
    size_t from = 0;
    const auto keep_until = [&](size_t end) {
      for (; from < std::min(end, own.size()); ++from) view.strides.push_back(own[from]);
    };
    for (size_t i = 0; i < begin.size() && i < steps.size(); ++i) {
      if (has(ellipsis_mask, i)) {
        size_t num_after = 0;
        for (size_t j = i + 1; j < begin.size(); ++j) num_after += has(new_axis_mask, j) ? 0 : 1;
        keep_until(own.size() - std::min(own.size(), num_after));
      } else if (has(new_axis_mask, i)) {
        view.strides.push_back(0);
      } else if (from < own.size()) {
        const int64_t dim = shape.dim(static_cast<int>(from));
        const bool is_shrunk = has(shrink_axis_mask, i);
        const bool is_open = has(begin_mask, i) && !is_shrunk;
        const int64_t first = is_open ? (steps[i] > 0 ? 0 : dim - 1) : begin[i] < 0 ? begin[i] + dim : begin[i];
        view.offset += std::min(std::max<int64_t>(first, 0), dim - 1) * own[from];
        if (!is_shrunk) view.strides.push_back(steps[i] * own[from]);
        ++from;
      }
    }
    keep_until(own.size());
    if (static_cast<int>(view.strides.size()) != Out(0).shape.rank()) return No("its slice has another rank");
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Split() {
    parsed_.kind = NodeKind::kView;
    const int axis_input = node_.op() == ops::kSplit ? 0 : 2;
    parsed_.data = node_.op() == ops::kSplit ? 1 : 0;
    const Shape& shape = In(parsed_.data).shape;
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Integers(axis_input, "its axis"));
    PF_ASSIGN_OR_RETURN(const int64_t axis, AxisFrom(axes.empty() ? 0 : axes[0], shape.rank()));
    const std::vector<int64_t> strides = RowMajorStrides(shape);
    int64_t begin = 0;
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      parsed_.views.push_back({begin * strides[axis], strides});
      begin += Out(static_cast<int>(i)).shape.dim(static_cast<int>(axis));
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Unpack() {
    parsed_.kind = NodeKind::kView;
    PF_ASSIGN_OR_RETURN(const int64_t given, IntAttr(node_, "axis"));
    PF_ASSIGN_OR_RETURN(const int64_t axis, AxisFrom(given, In(0).shape.rank()));
    std::vector<int64_t> strides = RowMajorStrides(In(0).shape);
    const int64_t step = strides[axis];
    strides.erase(strides.begin() + axis);
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      parsed_.views.push_back({static_cast<int64_t>(i) * step, strides});
    }
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Pad() {
    parsed_.kind = NodeKind::kPad;
    const DelegateTensor& pads = In(1);
    if (In(0).shape.rank() != 4 || !pads.constant.has_value() || pads.dtype != DType::kInt32) {
      return No("it does not pad an image with constant paddings");
    }
    if (node_.op() == ops::kPadV2 && !(In(2).constant.has_value() && FloatsOf(*In(2).constant)[0] == 0)) {
      return No("its padding value is not 0");
    }
    const UnalignedSpan<int32_t> values(pads.constant->bytes().data(), 8);
    if (values[0] != 0 || values[1] != 0) return No("it pads the batch");
    // Paddings of the last two dimensions, and not of the second one, are those of [N, C, H, W]. Paddings of the last
    // one alone are more often channels of [N, H, W, C], unless the image is a line.
    parsed_.is_channels_first = values[6] != 0 || values[7] != 0;
    const bool pads_height = values[4] != 0 || values[5] != 0;
    if (parsed_.is_channels_first && (values[2] != 0 || values[3] != 0 || (!pads_height && In(0).shape.dim(2) != 1))) {
      return No("it pads the channels");
    }
    const size_t first = parsed_.is_channels_first ? 4 : 2;
    parsed_.pad_top = values[first];
    parsed_.pad_bottom = values[first + 1];
    parsed_.pad_left = values[first + 2];
    parsed_.pad_right = values[first + 3];
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Resize(bool is_bilinear) {
    parsed_.kind = NodeKind::kResize;
    parsed_.is_bilinear = is_bilinear;
    if (In(0).dtype != DType::kFloat) return No("the image is not float");
    PF_ASSIGN_OR_RETURN(parsed_.align_corners, BoolAttr(node_, "align_corners"));
    PF_ASSIGN_OR_RETURN(parsed_.half_pixel_centers, BoolAttr(node_, "half_pixel_centers"));
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Softmax() {
    parsed_.kind = NodeKind::kSoftmax;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> BatchNorm() {
    parsed_.kind = NodeKind::kBatchNorm;
    PF_RETURN_IF_ERROR(ReadLayout());
    PF_ASSIGN_OR_RETURN(const bool is_training, BoolAttr(node_, "is_training"));
    if (is_training) return No("is_training is true");
    for (int i = 1; i < 5; ++i) PF_RETURN_IF_ERROR(CheckConstant(i, 1));
    PF_ASSIGN_OR_RETURN(const float epsilon, FloatAttr(node_, "epsilon"));
    const std::vector<float> scale = FloatsOf(*In(1).constant), offset = FloatsOf(*In(2).constant);
    const std::vector<float> mean = FloatsOf(*In(3).constant), variance = FloatsOf(*In(4).constant);
    for (size_t c = 0; c < scale.size(); ++c) {
      parsed_.factor.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
      parsed_.offset.push_back(offset[c] - mean[c] * parsed_.factor[c]);
    }
    return parsed_;
  }

  const Partition& partition_;
  const DelegateNode& from_;
  const Node& node_;
  ImageLayout layout_;
  ParsedNode parsed_;
};

}  // namespace

absl::StatusOr<ParsedNode> ParseNode(const Partition& partition, const DelegateNode& node) {
  return Reader(partition, node).Read();
}

int64_t OutputChannels(const ParsedNode& parsed) {
  return parsed.kind == NodeKind::kMatMul ? parsed.columns : parsed.window.output_channels;
}

int64_t PadAfter(const WindowAxis& axis) {
  const int64_t reach = (axis.output - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
  return std::max<int64_t>(0, reach - axis.input - axis.pad_before);
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace onednn
}  // namespace permafrost
