// Implements the names and properties of operations.
#include "runtime_check/delegates/xnnpack/operation.h"

namespace permafrost {
namespace xnnpack {

const char* NameOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAlias:
      return "alias";
    case OperationKind::kConvolution:
      return "convolution";
    case OperationKind::kTransposedConvolution:
      return "transposed convolution";
    case OperationKind::kMatMul:
      return "matrix product";
    case OperationKind::kBias:
      return "bias";
    case OperationKind::kAdd:
      return "add";
    case OperationKind::kSubtract:
      return "subtract";
    case OperationKind::kMultiply:
      return "multiply";
    case OperationKind::kDivide:
      return "divide";
    case OperationKind::kMaximum:
      return "maximum";
    case OperationKind::kMinimum:
      return "minimum";
    case OperationKind::kSquaredDifference:
      return "squared difference";
    case OperationKind::kClamp:
      return "clamp";
    case OperationKind::kAbs:
      return "abs";
    case OperationKind::kNegate:
      return "negate";
    case OperationKind::kSquare:
      return "square";
    case OperationKind::kFloor:
      return "floor";
    case OperationKind::kCeiling:
      return "ceiling";
    case OperationKind::kRound:
      return "round";
    case OperationKind::kElu:
      return "elu";
    case OperationKind::kLeakyRelu:
      return "leaky relu";
    case OperationKind::kPRelu:
      return "prelu";
    case OperationKind::kSigmoid:
      return "sigmoid";
    case OperationKind::kTanh:
      return "tanh";
    case OperationKind::kSoftmax:
      return "softmax";
    case OperationKind::kMaxPool:
      return "maximum pool";
    case OperationKind::kAveragePool:
      return "average pool";
    case OperationKind::kMean:
      return "mean";
    case OperationKind::kPad:
      return "pad";
    case OperationKind::kResize:
      return "resize";
    case OperationKind::kDepthToSpace:
      return "depth to space";
    case OperationKind::kCopy:
      return "copy";
  }
  return "unknown";
}

int64_t Operation::cost() const {
  const WindowGeometry& w = window;
  const auto pixels = static_cast<int64_t>(w.batch * w.output_height * w.output_width);
  const auto taps = static_cast<int64_t>(w.kernel_height) * w.kernel_width;
  switch (kind) {
    case OperationKind::kConvolution:
      return pixels * taps * static_cast<int64_t>(w.output_channels * (w.input_channels / w.groups));
    case OperationKind::kTransposedConvolution:
      return static_cast<int64_t>(w.batch * w.input_height * w.input_width) * taps *
             static_cast<int64_t>(w.output_channels * w.input_channels);
    case OperationKind::kMaxPool:
    case OperationKind::kAveragePool:
      return pixels * taps * static_cast<int64_t>(w.output_channels);
    case OperationKind::kMatMul:
      return static_cast<int64_t>(rows * channels * out_channels);
    default:
      return 0;
  }
}

bool Operation::loses_nan() const {
  switch (kind) {
    case OperationKind::kAlias:
    case OperationKind::kBias:
    case OperationKind::kCopy:
    case OperationKind::kPad:
    case OperationKind::kDepthToSpace:
    case OperationKind::kAbs:
    case OperationKind::kNegate:
    case OperationKind::kSquare:
    case OperationKind::kSquaredDifference:
    case OperationKind::kFloor:
    case OperationKind::kCeiling:
    case OperationKind::kRound:
    case OperationKind::kElu:
    case OperationKind::kLeakyRelu:
    case OperationKind::kPRelu:
    case OperationKind::kSigmoid:
    case OperationKind::kTanh:
      return false;
    default:
      return true;
  }
}

bool Operation::is_library() const {
  switch (kind) {
    case OperationKind::kAlias:
    case OperationKind::kBias:
    case OperationKind::kCopy:
    case OperationKind::kSigmoid:
    case OperationKind::kTanh:
      return false;
    default:
      return true;
  }
}

}  // namespace xnnpack
}  // namespace permafrost
