// Translates elementwise and row-wise nodes, and dispatches other nodes to the translators of their families.
#include "runtime_check/delegates/xnnpack/translate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/loops.h"

namespace permafrost {
namespace xnnpack {
namespace {

constexpr int kMostDims = 6;  // XNN_MAX_TENSOR_DIMS
// The library multiplies and stores some sizes in 32 bits.
constexpr int64_t kMostElements = int64_t{1} << 31;

absl::Status No(absl::string_view reason) { return absl::UnimplementedError(reason); }

absl::Status CheckTensor(const DelegateTensor& tensor) {
  if (tensor.dtype != DType::kFloat) {
    return No(absl::StrCat("it has a tensor of type ", DTypeName(tensor.dtype), ", expected float"));
  }
  const absl::StatusOr<int64_t> elements = tensor.shape.CheckedNumElements();
  if (!elements.ok() || *elements >= kMostElements) return No("it has a tensor of 2^31 elements or more");
  if (*elements == 0) return No("it has a tensor without elements");
  return absl::OkStatus();
}

Operation ElementByElement(OperationKind kind, const NodeView& view) {
  Operation operation;
  operation.kind = kind;
  operation.rows = Product(view.output_shape(0), 0, view.output_shape(0).rank());
  return operation;
}

absl::StatusOr<Operation> Clamp(const NodeView& view, float min, float max) {
  if (!(min < max)) return No("its bounds allow at most one value");
  Operation operation = ElementByElement(OperationKind::kClamp, view);
  operation.min = min;
  operation.max = max;
  return operation;
}

absl::StatusOr<Operation> Binary(OperationKind kind, const NodeView& view) {
  Operation operation = ElementByElement(kind, view);
  for (int i = 0; i < 2; ++i) {
    PF_RETURN_IF_ERROR(CheckTensor(view.input_tensor(i)));
    if (view.input_shape(i).rank() > kMostDims) return No("it has a tensor of more than 6 dimensions");
    if (view.is_constant(i)) PF_RETURN_IF_ERROR(view.Weights(i, "an operand").status());
    operation.inputs.push_back(view.input(i));
    operation.input_shapes.push_back(Sizes(view.input_shape(i)));
    if (operation.input_shapes[i].empty()) operation.input_shapes[i].push_back(1);
  }
  if (kind == OperationKind::kDivide) {
    if (!view.is_constant(1)) return No("its divisor is not constant, and XNNPACK does not compute NaN for 0 / 0");
    for (const float divisor : Floats(*view.input_tensor(1).constant)) {
      if (divisor == 0) return No("its divisor has zeros, and XNNPACK does not compute NaN for 0 / 0");
    }
  }
  return operation;
}

// Translates Maximum and Minimum. With one constant scalar they clamp the other operand.
absl::StatusOr<Operation> Bound(OperationKind kind, const NodeView& view) {
  for (int i = 0; i < 2; ++i) {
    const std::optional<Tensor>& constant = view.input_tensor(i).constant;
    if (!constant.has_value() || constant->num_elements() != 1 || view.input_shape(1 - i) != view.output_shape(0)) {
      continue;
    }
    PF_ASSIGN_OR_RETURN(const float bound, view.OneFloat(i, "its bound"));
    const float infinity = std::numeric_limits<float>::infinity();
    PF_ASSIGN_OR_RETURN(Operation operation,
                        kind == OperationKind::kMaximum ? Clamp(view, bound, infinity) : Clamp(view, -infinity, bound));
    operation.inputs = {view.input(1 - i)};
    return operation;
  }
  return Binary(kind, view);
}

absl::StatusOr<Operation> BiasAdd(const NodeView& view) {
  const absl::StatusOr<std::string> format = StringAttr(view.node(), "data_format");
  if (format.ok() && *format != "NHWC" && view.input_shape(0).rank() > 2) return No("its data_format is not NHWC");
  return Binary(OperationKind::kAdd, view);
}

absl::StatusOr<Operation> AddN(const NodeView& view) {
  if (view.num_inputs() != 2) return No("it does not have exactly two operands");
  return Binary(OperationKind::kAdd, view);
}

absl::StatusOr<Operation> ClipByValue(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(const float min, view.OneFloat(1, "its lower bound"));
  PF_ASSIGN_OR_RETURN(const float max, view.OneFloat(2, "its upper bound"));
  return Clamp(view, min, max);
}

absl::StatusOr<Operation> LeakyRelu(const NodeView& view) {
  Operation operation = ElementByElement(OperationKind::kLeakyRelu, view);
  PF_ASSIGN_OR_RETURN(operation.alpha, FloatAttr(view.node(), "alpha"));
  if (!std::isfinite(operation.alpha)) return No("its alpha is not finite");
  return operation;
}

absl::StatusOr<Operation> Softmax(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kSoftmax;
  const Shape& shape = view.input_shape(0);
  if (shape.rank() < 1) return No("its input is a scalar");
  operation.channels = Product(shape, shape.rank() - 1, shape.rank());
  operation.rows = Product(shape, 0, shape.rank() - 1);
  return operation;
}

absl::StatusOr<Operation> Mean(const NodeView& view) {
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, view.Integers(1, "its axes"));
  const Shape& shape = view.input_shape(0);
  std::vector<bool> is_reduced(shape.rank(), false);
  for (const int64_t axis : axes) is_reduced[axis < 0 ? axis + shape.rank() : axis] = true;
  // Axes of size 1 may count as reduced or not.
  int begin = shape.rank() - 1;
  while (begin > 0 && (is_reduced[begin - 1] || shape.dim(begin - 1) == 1)) --begin;
  for (int i = 0; i < begin; ++i) {
    if (is_reduced[i]) return No("the reduced axes are not a contiguous group that ends before the last axis");
  }
  if (shape.rank() < 2 || (is_reduced[shape.rank() - 1] && shape.dim(shape.rank() - 1) != 1)) {
    return No("it reduces the last axis");
  }
  Operation operation;
  operation.kind = OperationKind::kMean;
  operation.rows = Product(shape, 0, begin);
  operation.width = Product(shape, begin, shape.rank() - 1);
  operation.channels = Product(shape, shape.rank() - 1, shape.rank());
  return operation;
}

absl::StatusOr<Operation> Pad(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kPad;
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, view.Integers(1, "the sizes of its padding"));
  if (view.num_inputs() > 2) {
    // Infinities are allowed because of max pooling, which ignores them.
    PF_ASSIGN_OR_RETURN(operation.alpha, view.OneFloat(2, "its padding value", /*may_be_infinite=*/true));
  }
  const Shape& shape = view.input_shape(0);
  if (shape.rank() > kMostDims) return No("it has a tensor of more than 6 dimensions");
  if (shape.rank() == 0) return No("its input is a scalar");
  operation.input_shapes = {Sizes(shape)};
  for (int i = 0; i < shape.rank(); ++i) {
    operation.pad_before.push_back(static_cast<size_t>(paddings[2 * i]));
    operation.pad_after.push_back(static_cast<size_t>(paddings[2 * i + 1]));
  }
  return operation;
}

absl::StatusOr<Operation> Resize(const NodeView& view) {
  // The library computes positions in floats, which are exact for integers up to 2^24.
  constexpr int64_t kMostPixels = int64_t{1} << 24;
  Operation operation;
  operation.kind = OperationKind::kResize;
  SetImages(view.input_shape(0), view.output_shape(0), &operation.window);
  for (const Shape& shape : {view.input_shape(0), view.output_shape(0)}) {
    if (shape.dim(1) >= kMostPixels || shape.dim(2) >= kMostPixels) return No("its images have sides of 2^24 or more");
  }
  PF_ASSIGN_OR_RETURN(operation.align_corners, BoolAttr(view.node(), "align_corners"));
  PF_ASSIGN_OR_RETURN(const bool half_pixel_centers, BoolAttr(view.node(), "half_pixel_centers"));
  operation.is_legacy = !operation.align_corners && !half_pixel_centers;
  return operation;
}

absl::StatusOr<Operation> DepthToSpace(const NodeView& view) {
  Operation operation;
  operation.kind = OperationKind::kDepthToSpace;
  const absl::StatusOr<std::string> format = StringAttr(view.node(), "data_format");
  if (format.ok() && *format != "NHWC") return No("its data_format is not NHWC");
  PF_ASSIGN_OR_RETURN(const int64_t block_size, IntAttr(view.node(), "block_size"));
  operation.block_size = static_cast<uint32_t>(block_size);
  SetImages(view.input_shape(0), view.output_shape(0), &operation.window);
  return operation;
}

template <OperationKind kKind>
absl::StatusOr<Operation> Unary(const NodeView& view) {
  Operation operation = ElementByElement(kKind, view);
  if (kKind == OperationKind::kElu) operation.alpha = 1;
  return operation;
}

template <OperationKind kKind>
absl::StatusOr<Operation> TwoOperands(const NodeView& view) {
  return Binary(kKind, view);
}

template <OperationKind kKind>
absl::StatusOr<Operation> Extreme(const NodeView& view) {
  return Bound(kKind, view);
}

absl::StatusOr<Operation> Relu(const NodeView& view) { return Clamp(view, 0, std::numeric_limits<float>::infinity()); }

absl::StatusOr<Operation> Relu6(const NodeView& view) { return Clamp(view, 0, 6); }

using Translator = absl::StatusOr<Operation> (*)(const NodeView& view);

// Returns null for an unsupported op.
Translator FindTranslator(Op op) {
  switch (op.id()) {
    case ops::kIdentity:
    case ops::kReshape:
    case ops::kSqueeze:
    case ops::kExpandDims:
    case ops::kStopGradient:
      return &Unary<OperationKind::kAlias>;
    case ops::kConv2D:
    case ops::kDepthwiseConv2dNative:
      return &TranslateConvolution;
    case ops::kConv2DBackpropInput:
      return &TranslateTransposedConvolution;
    case ops::kMatMul:
    case ops::kBatchMatMulV2:
      return &TranslateMatMul;
    case ops::kMaxPool:
    case ops::kAvgPool:
      return &TranslatePool;
    case ops::kBiasAdd:
      return &BiasAdd;
    case ops::kAddN:
      return &AddN;
    case ops::kAdd:
    case ops::kAddV2:
      return &TwoOperands<OperationKind::kAdd>;
    case ops::kSub:
      return &TwoOperands<OperationKind::kSubtract>;
    case ops::kMul:
      return &TwoOperands<OperationKind::kMultiply>;
    case ops::kDiv:
    case ops::kRealDiv:
      return &TwoOperands<OperationKind::kDivide>;
    case ops::kSquaredDifference:
      return &TwoOperands<OperationKind::kSquaredDifference>;
    case ops::kMaximum:
      return &Extreme<OperationKind::kMaximum>;
    case ops::kMinimum:
      return &Extreme<OperationKind::kMinimum>;
    case ops::kClipByValue:
      return &ClipByValue;
    case ops::kRelu:
      return &Relu;
    case ops::kRelu6:
      return &Relu6;
    case ops::kElu:
      return &Unary<OperationKind::kElu>;
    case ops::kLeakyRelu:
      return &LeakyRelu;
    case ops::kAbs:
      return &Unary<OperationKind::kAbs>;
    case ops::kNeg:
      return &Unary<OperationKind::kNegate>;
    case ops::kSquare:
      return &Unary<OperationKind::kSquare>;
    case ops::kFloor:
      return &Unary<OperationKind::kFloor>;
    case ops::kCeil:
      return &Unary<OperationKind::kCeiling>;
    case ops::kRound:
    case ops::kRint:
      return &Unary<OperationKind::kRound>;
    case ops::kSigmoid:
      return &Unary<OperationKind::kSigmoid>;
    case ops::kTanh:
      return &Unary<OperationKind::kTanh>;
    case ops::kSoftmax:
      return &Softmax;
    case ops::kMean:
      return &Mean;
    case ops::kPad:
    case ops::kPadV2:
      return &Pad;
    case ops::kResizeBilinear:
      return &Resize;
    case ops::kDepthToSpace:
      return &DepthToSpace;
    case ops::kConcatV2:
    case ops::kPack:
      return &TranslateJoin;
    case ops::kSplit:
    case ops::kSplitV:
    case ops::kUnpack:
      return &TranslateSplit;
    case ops::kSlice:
    case ops::kStridedSlice:
      return &TranslateSlice;
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> NodeView::Integers(int i, absl::string_view what) const {
  const std::optional<Tensor>& constant = input_tensor(i).constant;
  if (!constant.has_value()) return No(absl::StrCat(what, " are not constant"));
  return IntegerValues(*constant);
}

absl::StatusOr<float> NodeView::OneFloat(int i, absl::string_view what, bool may_be_infinite) const {
  const std::optional<Tensor>& constant = input_tensor(i).constant;
  if (!constant.has_value() || constant->dtype() != DType::kFloat || constant->num_elements() != 1) {
    return No(absl::StrCat(what, " is not one constant float"));
  }
  const float value = constant->elements<float>()[0];
  if (std::isnan(value) || (!may_be_infinite && !std::isfinite(value))) {
    return No(absl::StrCat(what, " is not finite"));
  }
  return value;
}

absl::StatusOr<Tensor> NodeView::Weights(int i, absl::string_view what) const {
  const std::optional<Tensor>& constant = input_tensor(i).constant;
  if (!constant.has_value()) return No(absl::StrCat(what, " is not constant"));
  PF_RETURN_IF_ERROR(CheckTensor(input_tensor(i)));
  if (!AreFinite(constant->bytes())) return No(absl::StrCat(what, " holds NaN or infinity"));
  return *constant;
}

std::vector<size_t> Sizes(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

void SetImages(const Shape& input, const Shape& output, WindowGeometry* window) {
  window->batch = input.dim(0);
  window->input_height = input.dim(1);
  window->input_width = input.dim(2);
  window->input_channels = input.dim(3);
  window->output_height = output.dim(1);
  window->output_width = output.dim(2);
  window->output_channels = output.dim(3);
}

std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes().size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
  return values;
}

size_t Product(const Shape& shape, int begin, int end) {
  size_t product = 1;
  for (int i = begin; i < end; ++i) product *= static_cast<size_t>(shape.dim(i));
  return product;
}

absl::StatusOr<Operation> Translate(const Partition& partition, const DelegateNode& node) {
  const Op op = node.node->op();
  if (op == ops::kSqrt || op == ops::kRsqrt) {
    return No("it computes NaN for negative numbers, which other XNNPACK operators lose");
  }
  const Translator translator = FindTranslator(op);
  if (translator == nullptr) return No("XNNPACK has no such operator");
  for (const int tensor : node.inputs) {
    if (!partition.tensors[tensor].constant.has_value()) PF_RETURN_IF_ERROR(CheckTensor(partition.tensors[tensor]));
  }
  for (const int tensor : node.outputs) PF_RETURN_IF_ERROR(CheckTensor(partition.tensors[tensor]));
  PF_ASSIGN_OR_RETURN(Operation operation, translator(NodeView(partition, node)));
  operation.nodes = {node.node};
  if (operation.inputs.empty()) operation.inputs = {node.inputs[0]};
  operation.outputs = node.outputs;
  if (operation.inputs.size() == 1 && partition.tensors[operation.inputs[0]].constant.has_value()) {
    return No("its inputs are constant");
  }
  return operation;
}

}  // namespace xnnpack
}  // namespace permafrost
