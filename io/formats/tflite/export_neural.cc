// Writes operators of neural networks: convolutions, dense layers, pooling, normalisation, resizing, detection.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "io/formats/tflite/export_quantized.h"
#include "io/formats/tflite/operator_export.h"
#include "io/formats/tflite/permuted_tensor.h"

namespace permafrost {
namespace {

absl::Status NoForm(absl::string_view expected) {
  return absl::UnimplementedError(absl::StrCat("expected ", expected));
}

// Strides, dilations, window and padding of a node in NHWC.
struct Window {
  tflite::Padding padding = tflite::Padding::VALID;
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, height = 1, width = 1;
};

// Reads an attribute of four numbers, of which the first and the last must be 1.
absl::Status ReadPair(const Node& node, absl::string_view key, int32_t* h, int32_t* w) {
  if (node.FindAttr(key) == nullptr && key == "dilations") return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntListAttr(node, key));
  if (values.size() != 4 || values[0] != 1 || values[3] != 1 || values[1] < 1 || values[2] < 1 ||
      values[1] > INT32_MAX || values[2] > INT32_MAX) {
    return absl::UnimplementedError(
        absl::StrCat("attr '", key, "' is [", absl::StrJoin(values, ","), "], expected [1,h,w,1]"));
  }
  *h = static_cast<int32_t>(values[1]);
  *w = static_cast<int32_t>(values[2]);
  return absl::OkStatus();
}

absl::StatusOr<Window> WindowOf(const Node& node, bool has_size) {
  Window window;
  const absl::StatusOr<std::string> format = StringAttr(node, "data_format");
  if (format.ok() && *format != "NHWC") {
    return absl::UnimplementedError(
        absl::StrCat("has the data_format ", *format, ", expected NHWC; run lower_to_tflite"));
  }
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(node, "padding"));
  if (padding != "SAME" && padding != "VALID") {
    return absl::UnimplementedError(
        absl::StrCat("has the padding ", padding, ", expected SAME or VALID; run lower_to_tflite"));
  }
  window.padding = padding == "SAME" ? tflite::Padding::SAME : tflite::Padding::VALID;
  PF_RETURN_IF_ERROR(ReadPair(node, "strides", &window.stride_h, &window.stride_w));
  PF_RETURN_IF_ERROR(ReadPair(node, "dilations", &window.dilation_h, &window.dilation_w));
  if (has_size) PF_RETURN_IF_ERROR(ReadPair(node, "ksize", &window.height, &window.width));
  return window;
}

// Returns the constant filter or weights, of the given rank.
absl::StatusOr<Tensor> Weights(const OperatorExport& op, int input, int rank) {
  PF_ASSIGN_OR_RETURN(Tensor value, op.Weight(op.input(input)));
  if (op.is_quantized() && op.ScalesBehind(LayoutSource(op.input(input))) == nullptr) {
    return absl::UnimplementedError("has weights without scales");
  }
  const bool has_type = op.is_quantized() ? value.dtype() == DType::kInt8 || value.dtype() == DType::kUint8
                                          : value.dtype() == DType::kFloat || value.dtype() == DType::kHalf;
  if (!has_type || value.shape().rank() != rank) {
    return absl::UnimplementedError(
        absl::StrCat("has weights of ", DTypeName(value.dtype()), " and shape ", value.shape().ToString(),
                     ", expected ", op.is_quantized() ? "codes" : "float or half", " and ", rank, " dimensions"));
  }
  return value;
}

// Returns the bias as a vector of `channels` numbers. Returns Unimplemented if it has another shape.
absl::StatusOr<Tensor> BiasVector(const OperatorExport& op, int64_t channels) {
  PF_ASSIGN_OR_RETURN(const Tensor value, op.Weight(op.bias()));
  const Shape& shape = value.shape();
  if (op.is_quantized() && !op.is_dynamic()) {
    if ((value.dtype() == DType::kInt32 || value.dtype() == DType::kInt64) && shape == Shape({channels})) return value;
    return absl::UnimplementedError(absl::StrCat("has a bias of ", DTypeName(value.dtype()), " and shape ",
                                                 shape.ToString(), ", expected codes for ", channels, " channels"));
  }
  const bool is_vector = shape.rank() > 0 && shape.dim(shape.rank() - 1) == channels;
  const bool is_half = value.dtype() == DType::kHalf;
  if ((value.dtype() != DType::kFloat && !is_half) || shape.rank() > 4 ||
      ((value.num_elements() != 1 || is_half) && !(is_vector && value.num_elements() == channels))) {
    return absl::UnimplementedError(absl::StrCat("is followed by the addition of a constant of shape ",
                                                 shape.ToString(), ", expected ", channels, " channels"));
  }
  if (value.num_elements() == channels) return value.Reshaped(Shape({channels}));
  return Tensor::FromVector(Shape({channels}),
                            std::vector<float>(static_cast<size_t>(channels), value.elements<float>()[0]));
}

// A bias, with its scales if it has codes.
struct Bias {
  Tensor value;  // Of type kInvalid if there is none.
  std::optional<UniformScales> scales;
};

// Reads the bias. `needs_one`: zeros if there is none, which kernels of convolutions want always.
absl::StatusOr<Bias> BiasOf(const OperatorExport& op, int input, int weights, int64_t channels, bool needs_one) {
  Bias bias;
  const bool has_codes = op.is_quantized() && !op.is_dynamic();
  if (op.bias().node != nullptr) {
    PF_ASSIGN_OR_RETURN(bias.value, BiasVector(op, channels));
    if (has_codes) bias.scales = op.WeightScales(op.bias(), 0);
    return bias;
  }
  if (!needs_one) return bias;
  const size_t count = static_cast<size_t>(channels);
  if (!has_codes) {
    bias.value = Tensor::FromVector(Shape({channels}), std::vector<float>(count, 0.f));
    return bias;
  }
  const UniformScales* of_input = op.ScalesBehind(LayoutSource(op.input(input)));
  bias.scales = op.WeightScales(op.input(weights), 0);
  if (of_input == nullptr || !bias.scales.has_value()) return absl::UnimplementedError("has operands without scales");
  for (float& scale : bias.scales->scales) scale *= of_input->scales[0];
  for (int32_t& point : bias.scales->zero_points) point = 0;
  PF_ASSIGN_OR_RETURN(const DType dtype, op.CodesOfOperand(input));
  bias.value = dtype == DType::kInt16 ? Tensor::FromVector(Shape({channels}), std::vector<int64_t>(count, 0))
                                      : Tensor::FromVector(Shape({channels}), std::vector<int32_t>(count, 0));
  return bias;
}

bool HasFourBits(const std::optional<UniformScales>& scales) { return scales.has_value() && scales->has_four_bits; }

}  // namespace

absl::Status ExportConv2D(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const Window window, WindowOf(op->node(), false));
  PF_ASSIGN_OR_RETURN(const Tensor filter, Weights(*op, 1, 4));
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*op, 0, 1, filter.shape().dim(3), true));
  std::optional<UniformScales> scales = op->WeightScales(op->input(1), 0);
  if (op->is_dynamic()) op->RequireVersion(scales->scales.size() > 1 ? 5 : 2);
  if (HasFourBits(scales)) op->RequireVersion(7);
  // HWIO to OHWI.
  PF_ASSIGN_OR_RETURN(Tensor permuted, Permuted(filter, {3, 0, 1, 2}));
  const Shape input = op->ShapeOf(op->input(0));
  if (input.has_rank() && input.rank() == 4 && input.dim(3) >= 0 && input.dim(3) != filter.shape().dim(2)) {
    op->RequireVersion(6);  // Groups.
  }
  op->AddOperand(op->input(0));
  op->AddWeight(std::move(permuted), std::move(scales));
  op->AddWeight(std::move(bias.value), std::move(bias.scales));
  op->SetOptions(tflite::CreateConv2DOptions(op->builder(), window.padding, window.stride_w, window.stride_h,
                                             op->activation(), window.dilation_w, window.dilation_h));
  return absl::OkStatus();
}

absl::Status ExportDepthwiseConv2D(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const Window window, WindowOf(op->node(), false));
  PF_ASSIGN_OR_RETURN(const Tensor filter, Weights(*op, 1, 4));
  const Shape& shape = filter.shape();
  const int64_t channels = shape.dim(2) * shape.dim(3);
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*op, 0, 1, channels, true));
  std::optional<UniformScales> scales = op->WeightScales(op->input(1), 3);
  if (op->is_dynamic()) op->RequireVersion(scales->scales.size() > 1 ? 6 : 4);
  if (HasFourBits(scales)) op->RequireVersion(7);
  PF_ASSIGN_OR_RETURN(Tensor reshaped, filter.Reshaped(Shape({1, shape.dim(0), shape.dim(1), channels})));
  if (window.dilation_h != 1 || window.dilation_w != 1) op->RequireVersion(2);
  op->AddOperand(op->input(0));
  op->AddWeight(std::move(reshaped), std::move(scales));
  op->AddWeight(std::move(bias.value), std::move(bias.scales));
  op->SetOptions(tflite::CreateDepthwiseConv2DOptions(op->builder(), window.padding, window.stride_w, window.stride_h,
                                                      static_cast<int32_t>(shape.dim(3)), op->activation(),
                                                      window.dilation_w, window.dilation_h));
  return absl::OkStatus();
}

absl::Status ExportTransposeConv(OperatorExport* op) {
  if (op->num_inputs() != 3) return NoForm("three inputs");
  PF_ASSIGN_OR_RETURN(const Window window, WindowOf(op->node(), false));
  if (window.dilation_h != 1 || window.dilation_w != 1) return NoForm("no dilation");
  PF_ASSIGN_OR_RETURN(const Tensor filter, Weights(*op, 1, 4));
  if (op->is_dynamic()) return NoForm("a float filter: there is no kernel that quantises the input");
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*op, 2, 1, filter.shape().dim(2), false));
  if (bias.value.dtype() != DType::kInvalid) op->RequireVersion(3);
  if (op->activation() != tflite::ActivationFunctionType::NONE) op->RequireVersion(4);
  // HWOI to OHWI.
  PF_ASSIGN_OR_RETURN(Tensor permuted, Permuted(filter, {2, 0, 1, 3}));
  op->AddIntegers(op->input(0));
  op->AddWeight(std::move(permuted), op->WeightScales(op->input(1), 0));
  op->AddOperand(op->input(2));
  if (bias.value.dtype() != DType::kInvalid) op->AddWeight(std::move(bias.value), std::move(bias.scales));
  op->SetOptions(tflite::CreateTransposeConvOptions(op->builder(), window.padding, window.stride_w, window.stride_h,
                                                    op->activation()));
  return absl::OkStatus();
}

absl::Status ExportConv3D(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  const absl::StatusOr<std::string> format = StringAttr(op->node(), "data_format");
  if (format.ok() && *format != "NDHWC") return NoForm("the data_format NDHWC");
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(op->node(), "padding"));
  if (padding != "SAME" && padding != "VALID") return NoForm("the padding SAME or VALID");
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntListAttr(op->node(), "strides"));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, IntListAttr(op->node(), "dilations"));
  if (strides.size() != 5 || dilations.size() != 5) return NoForm("five strides and dilations");
  PF_ASSIGN_OR_RETURN(const Tensor filter, Weights(*op, 1, 5));
  if (op->is_quantized()) return NoForm("a float operator");
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*op, 0, 1, filter.shape().dim(4), true));
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->AddWeight(std::move(bias.value));
  const auto at = [](const std::vector<int64_t>& values, size_t i) { return static_cast<int32_t>(values[i]); };
  op->SetOptions(tflite::CreateConv3DOptions(
      op->builder(), padding == "SAME" ? tflite::Padding::SAME : tflite::Padding::VALID, at(strides, 1), at(strides, 3),
      at(strides, 2), op->activation(), at(dilations, 1), at(dilations, 3), at(dilations, 2)));
  return absl::OkStatus();
}

// MatMul, and BatchMatMul of any number of dimensions, with constant weights.
absl::Status ExportFullyConnected(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  const Node& node = op->node();
  const bool is_batched = node.op() != ops::kMatMul;
  PF_ASSIGN_OR_RETURN(const bool is_x_transposed, BoolAttr(node, is_batched ? "adj_x" : "transpose_a"));
  PF_ASSIGN_OR_RETURN(const bool is_transposed, BoolAttr(node, is_batched ? "adj_y" : "transpose_b"));
  if (is_x_transposed) return NoForm("operand 0 not transposed");
  PF_ASSIGN_OR_RETURN(Tensor weights, Weights(*op, 1, 2));
  const int64_t units = weights.shape().dim(is_transposed ? 0 : 1);
  if (is_batched) {
    // Leading dimensions stay; a Reshape, which the reader adds, can have one unknown dimension.
    const Shape shape = op->ShapeOf({op->input(0).node, op->input(0).port});
    int num_unknown = 0;
    for (int i = 0; shape.has_rank() && i + 1 < shape.rank(); ++i) num_unknown += shape.dim(i) < 0 ? 1 : 0;
    if (!shape.has_rank() || shape.rank() < 2 || num_unknown > 1) {
      return absl::UnimplementedError(
          absl::StrCat("has an operand of shape ", shape.ToString(), ", expected at most one unknown dimension"));
    }
    if (shape.rank() > 2) op->RequireVersion(5);
  }
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*op, 0, 1, units, false));
  std::optional<UniformScales> scales = op->WeightScales(op->input(1), 0);
  if (op->is_dynamic()) {
    op->RequireVersion(op->is_asymmetric() ? 9 : 3);
    if (scales->scales.size() > 1) op->RequireVersion(12);
  }
  if (HasFourBits(scales)) op->RequireVersion(10);
  if (!is_transposed) {
    PF_ASSIGN_OR_RETURN(weights, Permuted(weights, {1, 0}));
  }
  // The operator flattens its operand to rows of the width of the weights, as a Reshape before it may do.
  TensorRef x = op->input(0);
  if (!is_batched && x.port == 0 && x.node->op() == ops::kReshape && op->IsReadOnce(*x.node)) {
    const Shape rows = op->ShapeOf(x);
    if (rows.has_rank() && rows.rank() == 2 && rows.dim(1) == weights.shape().dim(1)) x = x.node->input(0);
  }
  op->AddOperand(x);
  op->AddWeight(std::move(weights), std::move(scales));
  if (bias.value.dtype() != DType::kInvalid) {
    op->AddWeight(std::move(bias.value), std::move(bias.scales));
  } else {
    op->OmitOperand();
  }
  const bool keeps_dims = is_batched && op->ShapeOf(op->input(0)).rank() > 2;
  op->SetOptions(tflite::CreateFullyConnectedOptions(op->builder(), op->activation(),
                                                     tflite::FullyConnectedOptionsWeightsFormat::DEFAULT, keeps_dims,
                                                     op->is_asymmetric()));
  return absl::OkStatus();
}

absl::Status ExportBatchMatMul(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  if (op->is_dynamic()) {
    PF_ASSIGN_OR_RETURN(Tensor weights, op->Weight(op->input(1)));
    op->RequireVersion(op->is_asymmetric() ? 4 : 1);
    op->AddOperand(op->input(0));
    op->AddWeight(std::move(weights), op->WeightScales(op->input(1), -1));
    op->SetOptions(tflite::CreateBatchMatMulOptions(op->builder(), BoolAttr(op->node(), "adj_x").value_or(false),
                                                    BoolAttr(op->node(), "adj_y").value_or(false),
                                                    op->is_asymmetric()));
    return absl::OkStatus();
  }
  const bool is_batched = op->node().op() != ops::kMatMul;
  PF_ASSIGN_OR_RETURN(const bool adj_x, BoolAttr(op->node(), is_batched ? "adj_x" : "transpose_a"));
  PF_ASSIGN_OR_RETURN(const bool adj_y, BoolAttr(op->node(), is_batched ? "adj_y" : "transpose_b"));
  for (int i = 0; i < 2; ++i) {
    PF_ASSIGN_OR_RETURN(const DType dtype, op->TypeOf(op->input(i)));
    if (dtype != DType::kFloat) return NoForm("operands of float");
    const Shape shape = op->ShapeOf(op->input(i));
    constexpr int kMostDims = 5;  // The limit of LiteRT's kernel.
    if (shape.has_rank() && shape.rank() > kMostDims) return NoForm("operands of at most 5 dimensions");
  }
  op->AddOperand(op->input(0));
  op->AddOperand(op->input(1));
  op->SetOptions(tflite::CreateBatchMatMulOptions(op->builder(), adj_x, adj_y));
  return absl::OkStatus();
}

absl::Status ExportPool(OperatorExport* op) {
  if (op->num_inputs() != 1) return NoForm("one input");
  PF_ASSIGN_OR_RETURN(const Window window, WindowOf(op->node(), true));
  op->AddOperand(op->input(0));
  op->SetOptions(tflite::CreatePool2DOptions(op->builder(), window.padding, window.stride_w, window.stride_h,
                                             window.width, window.height, op->activation()));
  return absl::OkStatus();
}

absl::Status ExportSoftmax(OperatorExport* op) {
  TensorRef x = op->input(0);
  float beta = 1;
  if (op->is_quantized() && x.node->op() == ops::kMul && x.node->num_data_inputs() == 2) {
    PF_ASSIGN_OR_RETURN(const double factor, op->ConstantScalar(x.node->input(1)));
    beta = static_cast<float>(factor);
    x = x.node->input(0);
  }
  op->AddOperand(x);
  op->SetOptions(tflite::CreateSoftmaxOptions(op->builder(), beta));
  return absl::OkStatus();
}

absl::Status ExportLocalResponseNormalization(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const int64_t radius, IntAttr(op->node(), "depth_radius"));
  PF_ASSIGN_OR_RETURN(const float bias, FloatAttr(op->node(), "bias"));
  PF_ASSIGN_OR_RETURN(const float alpha, FloatAttr(op->node(), "alpha"));
  PF_ASSIGN_OR_RETURN(const float beta, FloatAttr(op->node(), "beta"));
  op->AddOperand(op->input(0));
  op->SetOptions(
      tflite::CreateLocalResponseNormalizationOptions(op->builder(), static_cast<int32_t>(radius), bias, alpha, beta));
  return absl::OkStatus();
}

absl::Status ExportResizeBilinear(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool align_corners, BoolAttr(op->node(), "align_corners"));
  PF_ASSIGN_OR_RETURN(const bool half_pixel_centers, BoolAttr(op->node(), "half_pixel_centers"));
  if (half_pixel_centers) op->RequireVersion(3);
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateResizeBilinearOptions(op->builder(), 0, 0, align_corners, half_pixel_centers));
  return absl::OkStatus();
}

absl::Status ExportResizeNearestNeighbor(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  PF_ASSIGN_OR_RETURN(const bool align_corners, BoolAttr(op->node(), "align_corners"));
  PF_ASSIGN_OR_RETURN(const bool half_pixel_centers, BoolAttr(op->node(), "half_pixel_centers"));
  if (half_pixel_centers || align_corners) op->RequireVersion(3);
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateResizeNearestNeighborOptions(op->builder(), align_corners, half_pixel_centers));
  return absl::OkStatus();
}

absl::Status ExportRfft2D(OperatorExport* op) {
  if (op->num_inputs() != 2) return NoForm("two inputs");
  op->AddOperand(op->input(0));
  op->AddIntegers(op->input(1));
  op->SetOptions(tflite::CreateRfft2dOptions(op->builder()));
  return absl::OkStatus();
}

absl::Status ExportNonMaxSuppression(OperatorExport* op) {
  PF_ASSIGN_OR_RETURN(const bool is_padded, BoolAttr(op->node(), "pad_to_max_output_size"));
  if (!is_padded) return NoForm("attr 'pad_to_max_output_size' to be true");
  for (int i = 0; i < op->num_inputs(); ++i) op->AddOperand(op->input(i));
  return absl::OkStatus();
}

}  // namespace permafrost
