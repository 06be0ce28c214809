// Calls the constructors and setters of the library.
#include "runtime_check/delegates/xnnpack/operator.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "runtime_check/delegates/xnnpack/library.h"
#include "runtime_check/delegates/xnnpack/translate.h"

namespace permafrost {
namespace xnnpack {
namespace {

// [height, width, a, b] becomes [b, height, width, a]; or, with `keeps_order`, [a, height, width, b].
std::vector<float> PackFilter(const Tensor& filter, bool keeps_order) {
  constexpr size_t kTile = 16;  // Floats in a cache line: tiles are read and written in whole cache lines.
  const Shape& shape = filter.shape();
  const auto taps = static_cast<size_t>(shape.dim(0) * shape.dim(1));
  const auto a = static_cast<size_t>(shape.dim(2)), b = static_cast<size_t>(shape.dim(3));
  const UnalignedSpan<float> from = filter.elements<float>();
  std::vector<float> to(from.size());
  for (size_t tap = 0; tap < taps; ++tap) {
    for (size_t i = 0; keeps_order && i < a; ++i) {
      std::memcpy(&to[(i * taps + tap) * b], from.bytes() + (tap * a + i) * b * sizeof(float), b * sizeof(float));
    }
    for (size_t i = 0; !keeps_order && i < a; i += kTile) {
      for (size_t j = 0; j < b; j += kTile) {
        for (size_t y = j; y < std::min(b, j + kTile); ++y) {
          for (size_t x = i; x < std::min(a, i + kTile); ++x) {
            to[(y * taps + tap) * a + x] = from[(tap * a + x) * b + y];
          }
        }
      }
    }
  }
  return to;
}

const float* DataOrNull(const std::vector<float>& values) { return values.empty() ? nullptr : values.data(); }

enum xnn_status MakeConvolution(const Operation& operation, xnn_operator_t* op) {
  const WindowGeometry& w = operation.window;
  const std::vector<float> filter = w.is_depthwise ? Floats(*operation.filter) : PackFilter(*operation.filter, false);
  return xnn_create_convolution2d_nhwc_f32(
      w.pad_top, w.pad_right, w.pad_bottom, w.pad_left, w.kernel_height, w.kernel_width, w.stride_height,
      w.stride_width, w.dilation_height, w.dilation_width, w.groups, w.input_channels / w.groups,
      w.output_channels / w.groups, w.input_channels, w.output_channels, filter.data(), DataOrNull(operation.bias),
      operation.min, operation.max, w.is_depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, op);
}

enum xnn_status MakeTransposedConvolution(const Operation& operation, xnn_operator_t* op) {
  const WindowGeometry& w = operation.window;
  const std::vector<float> filter = PackFilter(*operation.filter, true);
  return xnn_create_deconvolution2d_nhwc_f32(
      w.pad_top, w.pad_right, w.pad_bottom, w.pad_left, w.kernel_height, w.kernel_width, w.stride_height,
      w.stride_width, w.dilation_height, w.dilation_width, 1, w.input_channels, w.output_channels, w.input_channels,
      w.output_channels, filter.data(), DataOrNull(operation.bias), operation.min, operation.max, 0, op);
}

enum xnn_status MakeMatMul(const Operation& operation, xnn_operator_t* op) {
  const std::vector<float> filter = Floats(*operation.filter);
  return xnn_create_fully_connected_nc_f32(operation.channels, operation.out_channels, operation.channels,
                                           operation.out_channels, filter.data(), DataOrNull(operation.bias),
                                           operation.min, operation.max,
                                           operation.is_filter_transposed ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS, op);
}

enum xnn_status Make(const Operation& o, xnn_operator_t* op) {
  const WindowGeometry& w = o.window;
  switch (o.kind) {
    case OperationKind::kConvolution:
      return MakeConvolution(o, op);
    case OperationKind::kTransposedConvolution:
      return MakeTransposedConvolution(o, op);
    case OperationKind::kMatMul:
      return MakeMatMul(o, op);
    case OperationKind::kAdd:
      return xnn_create_add_nd_f32(o.min, o.max, 0, op);
    case OperationKind::kSubtract:
      return xnn_create_subtract_nd_f32(o.min, o.max, 0, op);
    case OperationKind::kMultiply:
      return xnn_create_multiply_nd_f32(o.min, o.max, 0, op);
    case OperationKind::kDivide:
      return xnn_create_divide_nd_f32(o.min, o.max, 0, op);
    case OperationKind::kMaximum:
      return xnn_create_maximum_nd_f32(0, op);
    case OperationKind::kMinimum:
      return xnn_create_minimum_nd_f32(0, op);
    case OperationKind::kSquaredDifference:
      return xnn_create_squared_difference_nd_f32(0, op);
    case OperationKind::kClamp:
      return xnn_create_clamp_nc_f32(1, 1, 1, o.min, o.max, 0, op);
    case OperationKind::kAbs:
      return xnn_create_abs_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kNegate:
      return xnn_create_negate_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kSquare:
      return xnn_create_square_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kFloor:
      return xnn_create_floor_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kCeiling:
      return xnn_create_ceiling_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kRound:
      return xnn_create_bankers_rounding_nc_f32(1, 1, 1, 0, op);
    case OperationKind::kElu:
      return xnn_create_elu_nc_f32(1, 1, 1, o.alpha, 0, op);
    case OperationKind::kLeakyRelu:
      return xnn_create_leaky_relu_nc_f32(1, 1, 1, o.alpha, 0, op);
    case OperationKind::kPRelu:
      return xnn_create_prelu_nc_f32(o.channels, o.channels, o.channels, o.slope.data(), 0, op);
    case OperationKind::kSoftmax:
      return xnn_create_softmax_nc_f32(o.channels, o.channels, o.channels, 0, op);
    case OperationKind::kMaxPool:
      return xnn_create_max_pooling2d_nhwc_f32(w.pad_top, w.pad_right, w.pad_bottom, w.pad_left, w.kernel_height,
                                               w.kernel_width, w.stride_height, w.stride_width, 1, 1, w.input_channels,
                                               w.input_channels, w.output_channels, o.min, o.max, 0, op);
    case OperationKind::kAveragePool:
      return xnn_create_average_pooling2d_nhwc_f32(w.pad_top, w.pad_right, w.pad_bottom, w.pad_left, w.kernel_height,
                                                   w.kernel_width, w.stride_height, w.stride_width, w.input_channels,
                                                   w.input_channels, w.output_channels, o.min, o.max, 0, op);
    case OperationKind::kMean:
      return xnn_create_global_average_pooling_nwc_f32(o.channels, o.channels, o.channels, o.min, o.max, 0, op);
    case OperationKind::kPad:
      return xnn_create_constant_pad_nd_x32(&o.alpha, 0, op);
    case OperationKind::kResize:
      return xnn_create_resize_bilinear2d_nhwc_f32(
          w.input_channels, w.input_channels, w.output_channels,
          o.align_corners ? XNN_FLAG_ALIGN_CORNERS : (o.is_legacy ? XNN_FLAG_TENSORFLOW_LEGACY_MODE : 0), op);
    case OperationKind::kDepthToSpace:
      return xnn_create_depth_to_space_nhwc_x32(w.output_channels, w.input_channels, w.output_channels, o.block_size, 0,
                                                op);
    default:
      return xnn_status_invalid_parameter;
  }
}

enum xnn_status SetUp(const Operation& o, xnn_operator_t op, const float* const* inputs, float* output,
                      pthreadpool_t pool) {
  const WindowGeometry& w = o.window;
  const float* const x = inputs[0];
  const auto binary = [&](auto set_up) {
    return set_up(op, o.input_shapes[0].size(), o.input_shapes[0].data(), o.input_shapes[1].size(),
                  o.input_shapes[1].data(), inputs[0], inputs[1], output, pool);
  };
  const auto images = [&](auto set_up) { return set_up(op, w.batch, w.input_height, w.input_width, x, output, pool); };
  const auto rows = [&](auto set_up) { return set_up(op, o.rows, x, output, pool); };
  switch (o.kind) {
    case OperationKind::kConvolution:
      return images(xnn_setup_convolution2d_nhwc_f32);
    case OperationKind::kTransposedConvolution:
      return xnn_setup_deconvolution2d_nhwc_f32(op, w.batch, w.input_height, w.input_width, w.adjustment_height,
                                                w.adjustment_width, x, output, pool);
    case OperationKind::kMatMul:
      return rows(xnn_setup_fully_connected_nc_f32);
    case OperationKind::kAdd:
      return binary(xnn_setup_add_nd_f32);
    case OperationKind::kSubtract:
      return binary(xnn_setup_subtract_nd_f32);
    case OperationKind::kMultiply:
      return binary(xnn_setup_multiply_nd_f32);
    case OperationKind::kDivide:
      return binary(xnn_setup_divide_nd_f32);
    case OperationKind::kMaximum:
      return binary(xnn_setup_maximum_nd_f32);
    case OperationKind::kMinimum:
      return binary(xnn_setup_minimum_nd_f32);
    case OperationKind::kSquaredDifference:
      return binary(xnn_setup_squared_difference_nd_f32);
    case OperationKind::kClamp:
      return rows(xnn_setup_clamp_nc_f32);
    case OperationKind::kAbs:
      return rows(xnn_setup_abs_nc_f32);
    case OperationKind::kNegate:
      return rows(xnn_setup_negate_nc_f32);
    case OperationKind::kSquare:
      return rows(xnn_setup_square_nc_f32);
    case OperationKind::kFloor:
      return rows(xnn_setup_floor_nc_f32);
    case OperationKind::kCeiling:
      return rows(xnn_setup_ceiling_nc_f32);
    case OperationKind::kRound:
      return rows(xnn_setup_bankers_rounding_nc_f32);
    case OperationKind::kElu:
      return rows(xnn_setup_elu_nc_f32);
    case OperationKind::kLeakyRelu:
      return rows(xnn_setup_leaky_relu_nc_f32);
    case OperationKind::kPRelu:
      return rows(xnn_setup_prelu_nc_f32);
    case OperationKind::kSoftmax:
      return rows(xnn_setup_softmax_nc_f32);
    case OperationKind::kMaxPool:
      return images(xnn_setup_max_pooling2d_nhwc_f32);
    case OperationKind::kAveragePool:
      return images(xnn_setup_average_pooling2d_nhwc_f32);
    case OperationKind::kMean:
      return xnn_setup_global_average_pooling_nwc_f32(op, o.rows, o.width, x, output, pool);
    case OperationKind::kPad:
      return xnn_setup_constant_pad_nd_x32(op, o.input_shapes[0].size(), o.input_shapes[0].data(), o.pad_before.data(),
                                           o.pad_after.data(), x, output, pool);
    case OperationKind::kResize:
      return xnn_setup_resize_bilinear2d_nhwc_f32(op, w.batch, w.input_height, w.input_width, w.output_height,
                                                  w.output_width, x, output, pool);
    case OperationKind::kDepthToSpace:
      return images(xnn_setup_depth_to_space_nhwc_x32);
    default:
      return xnn_status_invalid_parameter;
  }
}

}  // namespace

absl::StatusOr<OperatorPointer> MakeOperator(const Operation& operation) {
  xnn_operator_t op = nullptr;
  PF_RETURN_IF_ERROR(ToStatus(Make(operation, &op), NameOf(operation.kind)));
  return OperatorPointer(op);
}

absl::Status SetUpOperator(const Operation& operation, xnn_operator_t op, const float* const* inputs, float* output,
                           pthreadpool_t pool) {
  return ToStatus(SetUp(operation, op, inputs, output, pool), NameOf(operation.kind));
}

}  // namespace xnnpack
}  // namespace permafrost
