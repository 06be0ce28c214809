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
    const int data = parsed_.kind == NodeKind::kTransposedConvolution ? 2
                     : parsed_.kind == NodeKind::kElementwise         ? parsed_.left
                                                                      : 0;
    if (In(data).constant.has_value()) return No("its data input is constant");
    if (In(data).dtype != DType::kFloat) return No(absl::StrCat("its input is ", DTypeName(In(data).dtype)));
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
        PF_RETURN_IF_ERROR(CheckLayout());
        return Binary(LoopOp::kAdd);
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
      case ops::kMean:
        return Mean();
      case ops::kConcatV2:
        return Concat();
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

  absl::Status CheckLayout() const {
    PF_ASSIGN_OR_RETURN(const ImageLayout layout, ReadImageLayout(node_));
    if (layout.is_nchw() && Out(0).shape.rank() == 4) return No("data_format is NCHW, expected NHWC");
    return absl::OkStatus();
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

  absl::StatusOr<ParsedNode> Binary(LoopOp op) {
    parsed_.kind = NodeKind::kElementwise;
    parsed_.loop = op;
    parsed_.left = 0;
    parsed_.right = 1;
    const bool left_fits = In(0).shape.num_elements() == Out(0).shape.num_elements() && !In(0).constant.has_value();
    const bool right_fits = In(1).shape.num_elements() == Out(0).shape.num_elements() && !In(1).constant.has_value();
    if (!left_fits) {
      if (!right_fits) return No("neither operand is a nonconstant tensor with the shape of the result");
      // c - x is -x + c.
      if (op == LoopOp::kSub && In(0).constant.has_value() && In(0).shape.num_elements() == 1) {
        parsed_.left = 1;
        parsed_.right = -1;
        parsed_.loop = LoopOp::kAffine;
        parsed_.alpha = -1;
        parsed_.beta = FloatsOf(*In(0).constant)[0];
        return parsed_;
      }
      if (!IsCommutative(op)) return No("the first operand is broadcast or constant");
      std::swap(parsed_.left, parsed_.right);
    }
    const std::optional<Meeting> meeting =
        MeetingOf(In(parsed_.left).shape, In(parsed_.right).shape, In(parsed_.right).constant.has_value());
    if (!meeting.has_value()) {
      return No(absl::StrCat("operands of shapes ", In(0).shape.ToString(), " and ", In(1).shape.ToString(),
                             " broadcast in an unsupported way"));
    }
    parsed_.meeting = *meeting;
    if (parsed_.meeting == Meeting::kScalar && In(parsed_.right).constant.has_value()) {
      return WithNumber(op, FloatsOf(*In(parsed_.right).constant)[0]);
    }
    return parsed_;
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
        return No("it subtracts a scalar constant");
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
    PF_RETURN_IF_ERROR(CheckLayout());
    PF_RETURN_IF_ERROR(ReadPostOps());
    const Shape& image = In(0).shape;
    const Shape& filter = In(1).shape;
    PF_ASSIGN_OR_RETURN(const Window window,
                        ReadWindow(node_, ImageLayout(), {filter.dim(0), filter.dim(1)}, image.dim(1), image.dim(2)));
    parsed_.window = {
        image.dim(0),        image.dim(1), image.dim(2), image.dim(3),
        Out(0).shape.dim(3), window.y,     window.x,     is_depthwise ? image.dim(3) : image.dim(3) / filter.dim(2)};
    return parsed_;
  }

  absl::StatusOr<ParsedNode> TransposedConvolution() {
    parsed_.kind = NodeKind::kTransposedConvolution;
    PF_RETURN_IF_ERROR(CheckConstant(1, 4));
    PF_RETURN_IF_ERROR(CheckLayout());
    const Shape& image = Out(0).shape;
    const Shape& filter = In(1).shape;
    PF_ASSIGN_OR_RETURN(const Window window,
                        ReadWindow(node_, ImageLayout(), {filter.dim(0), filter.dim(1)}, image.dim(1), image.dim(2)));
    if (filter.dim(2) != image.dim(3)) return No("it has groups of channels");
    // The window is that of the convolution from the result to the input, whose transpose the node computes.
    parsed_.window = {image.dim(0), image.dim(1), image.dim(2), In(2).shape.dim(3),
                      image.dim(3), window.y,     window.x,     1};
    return parsed_;
  }

  absl::StatusOr<ParsedNode> MatMul() {
    parsed_.kind = NodeKind::kMatMul;
    PF_RETURN_IF_ERROR(CheckConstant(1, 2));
    PF_RETURN_IF_ERROR(ReadPostOps());
    PF_ASSIGN_OR_RETURN(const bool transpose_a, BoolAttr(node_, "transpose_a"));
    PF_ASSIGN_OR_RETURN(parsed_.transpose_b, BoolAttr(node_, "transpose_b"));
    if (transpose_a) return No("the left matrix is transposed");
    if (In(0).shape.rank() != 2) return No("the left operand is not a matrix");
    parsed_.rows = In(0).shape.dim(0);
    parsed_.depth = In(0).shape.dim(1);
    parsed_.columns = Out(0).shape.dim(1);
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Pool(bool is_average) {
    parsed_.kind = NodeKind::kPool;
    parsed_.is_average = is_average;
    PF_RETURN_IF_ERROR(CheckLayout());
    PF_ASSIGN_OR_RETURN(const KernelSize kernel, ReadKernelSize(node_, ImageLayout()));
    const Shape& image = In(0).shape;
    PF_ASSIGN_OR_RETURN(const Window window, ReadWindow(node_, ImageLayout(), kernel, image.dim(1), image.dim(2)));
    parsed_.window = {image.dim(0), image.dim(1), image.dim(2), image.dim(3), image.dim(3), window.y, window.x, 1};
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Mean() {
    parsed_.kind = NodeKind::kMean;
    const DelegateTensor& axes = In(1);
    if (In(0).shape.rank() != 4 || !axes.constant.has_value() || axes.dtype != DType::kInt32 ||
        axes.shape.num_elements() != 2) {
      return No("it does not reduce exactly the height and width of an image");
    }
    const UnalignedSpan<int32_t> values(axes.constant->bytes().data(), 2);
    const auto axis = [&](size_t i) { return values[i] < 0 ? values[i] + 4 : values[i]; };
    if (axis(0) + axis(1) != 3 || axis(0) * axis(1) != 2)
      return No("it does not reduce exactly the height and width of an image");
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
    if (values[0] != 0 || values[1] != 0 || values[6] != 0 || values[7] != 0) {
      return No("it pads the batch or the channels");
    }
    parsed_.pad_top = values[2];
    parsed_.pad_bottom = values[3];
    parsed_.pad_left = values[4];
    parsed_.pad_right = values[5];
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Resize(bool is_bilinear) {
    parsed_.kind = NodeKind::kResize;
    parsed_.is_bilinear = is_bilinear;
    if (In(0).dtype != DType::kFloat) return No("the image is not float");
    PF_ASSIGN_OR_RETURN(parsed_.align_corners, BoolAttr(node_, "align_corners"));
    PF_ASSIGN_OR_RETURN(parsed_.half_pixel_centers, BoolAttr(node_, "half_pixel_centers"));
    if (!is_bilinear) return No("nearest-neighbour resizing is not implemented by this delegate");
    return parsed_;
  }

  absl::StatusOr<ParsedNode> Softmax() {
    parsed_.kind = NodeKind::kSoftmax;
    return parsed_;
  }

  absl::StatusOr<ParsedNode> BatchNorm() {
    parsed_.kind = NodeKind::kBatchNorm;
    PF_RETURN_IF_ERROR(CheckLayout());
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
  ParsedNode parsed_;
};

}  // namespace

absl::StatusOr<ParsedNode> ParseNode(const Partition& partition, const DelegateNode& node) {
  return Reader(partition, node).Read();
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
