// Operators of neural networks: convolutions, dense layers, pooling, normalisation, resizing, detection.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "flatbuffers/flexbuffers.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/permuted_tensor.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

AttrValue PaddingAttr(tflite::Padding padding) {
  return AttrValue::String(padding == tflite::Padding::VALID ? "VALID" : "SAME");
}

AttrValue Window(int64_t height, int64_t width) { return AttrValue::IntList({1, height, width, 1}); }

// Returns an operand with permuted dimensions. A constant is permuted at import.
absl::StatusOr<TensorRef> PermutedInput(OperatorImport* op, int input, const std::vector<int32_t>& order) {
  PF_ASSIGN_OR_RETURN(const Tensor* value, op->InputValue(input));
  if (value == nullptr || value->dtype() == DType::kString) {
    PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(input));
    PF_ASSIGN_OR_RETURN(const TensorRef permutation, op->Ints(order));
    return op->Emit(ops::kTranspose, {x, permutation});
  }
  absl::StatusOr<Tensor> permuted = Permuted(*value, order);
  PF_RETURN_IF_ERROR(Annotate(permuted.status(), absl::StrCat("operand ", input)));
  return op->Const(*std::move(permuted));
}

// Returns an operand with another shape of the same number of elements.
absl::StatusOr<TensorRef> Reshaped(OperatorImport* op, int input, const std::vector<int32_t>& dims) {
  PF_ASSIGN_OR_RETURN(const Tensor* value, op->InputValue(input));
  if (value != nullptr) {
    PF_ASSIGN_OR_RETURN(Tensor reshaped, value->Reshaped(Shape(std::vector<int64_t>(dims.begin(), dims.end()))));
    return op->Const(std::move(reshaped));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(input));
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Ints(dims));
  return op->Emit(ops::kReshape, {x, shape});
}

// Declares that an operator with float input and quantised weights quantises its input when it runs.
void DeclareDynamic(OperatorImport* op, int input, bool asymmetric) {
  if (!op->ComputesWithCodes() || op->IsQuantizedInput(input) || op->IsQuantizedOutput(0)) return;
  op->SetRounding("dynamic");
  op->Mark(kAsymmetricAttr, AttrValue::Bool(asymmetric));
}

// Adds the bias, if there is one, and the activation.
Results Finish(OperatorImport* op, TensorRef x, int bias, tflite::ActivationFunctionType activation, int input = 0,
               int filter = 1) {
  if (op->HasInput(bias)) {
    PF_ASSIGN_OR_RETURN(const TensorRef addend, op->Bias(bias, input, filter));
    PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kBiasAdd, {x, addend}));
  }
  PF_ASSIGN_OR_RETURN(x, op->Activate(x, activation));
  return std::vector<TensorRef>{x};
}

absl::Status RequireOptions(const void* options) {
  return options == nullptr ? absl::InvalidArgumentError("has no options") : absl::OkStatus();
}

Results Conv2D(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::Conv2DOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  DeclareDynamic(op, 0, false);
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  // OHWI to HWIO.
  PF_ASSIGN_OR_RETURN(const TensorRef filter, PermutedInput(op, 1, {1, 2, 3, 0}));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kConv2D, {x, filter},
                               {{"strides", Window(options->stride_h(), options->stride_w())},
                                {"padding", PaddingAttr(options->padding())},
                                {"dilations", Window(options->dilation_h_factor(), options->dilation_w_factor())}}));
  return Finish(op, y, 2, options->fused_activation_function());
}

Results DepthwiseConv2D(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::DepthwiseConv2DOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  DeclareDynamic(op, 0, false);
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const Shape input, op->InputShape(0));
  PF_ASSIGN_OR_RETURN(const Shape shape, op->InputShape(1));
  const int64_t channels = input.rank() == 4 ? input.dim(3) : 0;
  if (shape.rank() != 4 || shape.dim(0) != 1 || channels < 1 || shape.dim(3) % channels != 0) {
    return absl::InvalidArgumentError(absl::StrCat("has a filter of shape ", shape.ToString(),
                                                   " for an input of shape ", input.ToString(),
                                                   ", expected [1,h,w,k x channels]"));
  }
  // 1HW(C x M) to HWCM, with the same bytes.
  PF_ASSIGN_OR_RETURN(const TensorRef filter,
                      Reshaped(op, 1,
                               {static_cast<int32_t>(shape.dim(1)), static_cast<int32_t>(shape.dim(2)),
                                static_cast<int32_t>(channels), static_cast<int32_t>(shape.dim(3) / channels)}));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kDepthwiseConv2dNative, {x, filter},
                               {{"strides", Window(options->stride_h(), options->stride_w())},
                                {"padding", PaddingAttr(options->padding())},
                                {"dilations", Window(options->dilation_h_factor(), options->dilation_w_factor())}}));
  return Finish(op, y, 2, options->fused_activation_function());
}

// Operands: output shape, weights OHWI, input, bias.
Results TransposeConv(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::TransposeConvOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Input(0));
  // OHWI to HWOI.
  PF_ASSIGN_OR_RETURN(const TensorRef filter, PermutedInput(op, 1, {1, 2, 0, 3}));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(2));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kConv2DBackpropInput, {shape, filter, x},
                                                  {{"strides", Window(options->stride_h(), options->stride_w())},
                                                   {"padding", PaddingAttr(options->padding())}}));
  return Finish(op, y, 3, options->fused_activation_function(), 2, 1);
}

// MediaPipe's custom operator. Operands: input, weights OHWI, bias. The options are a C struct of 32-bit numbers; the
// first three are the padding (1 SAME, 2 VALID), the horizontal stride and the vertical stride.
Results Convolution2DTransposeBias(OperatorImport* op) {
  constexpr size_t kNumbers = 3;
  const auto* bytes = op->op().custom_options();
  int32_t numbers[kNumbers] = {};
  if (bytes == nullptr || bytes->size() < sizeof(numbers)) {
    return absl::InvalidArgumentError(absl::StrCat("has options of ", bytes == nullptr ? 0 : bytes->size(),
                                                   " bytes, expected at least ", sizeof(numbers)));
  }
  std::memcpy(numbers, bytes->data(), sizeof(numbers));
  const auto [padding, stride_w, stride_h] = std::make_tuple(numbers[0], numbers[1], numbers[2]);
  if (padding < 1 || padding > 2 || stride_w < 1 || stride_h < 1) {
    return absl::InvalidArgumentError(absl::StrCat("has padding ", padding, " and strides ", stride_h, " and ",
                                                   stride_w, ", expected padding 1 or 2 and positive strides"));
  }
  PF_ASSIGN_OR_RETURN(const Shape output, op->OutputShape(0));
  std::vector<int32_t> dims;
  for (const int64_t dim : output.dims()) dims.push_back(static_cast<int32_t>(dim));
  if (dims.size() != 4 || std::find(dims.begin(), dims.end(), -1) != dims.end()) {
    return absl::UnimplementedError(
        absl::StrCat("has a result of shape ", output.ToString(), ", expected four known dimensions"));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Ints(dims));
  PF_ASSIGN_OR_RETURN(const TensorRef filter, PermutedInput(op, 1, {1, 2, 0, 3}));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kConv2DBackpropInput, {shape, filter, x},
                                                  {{"strides", Window(stride_h, stride_w)},
                                                   {"padding", AttrValue::String(padding == 2 ? "VALID" : "SAME")}}));
  return Finish(op, y, 2, tflite::ActivationFunctionType::NONE);
}

Results Conv3D(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::Conv3DOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef filter, op->Input(1));
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kConv3D, {x, filter},
               {{"strides", AttrValue::IntList({1, options->stride_d(), options->stride_h(), options->stride_w(), 1})},
                {"padding", PaddingAttr(options->padding())},
                {"dilations", AttrValue::IntList({1, options->dilation_d_factor(), options->dilation_h_factor(),
                                                  options->dilation_w_factor(), 1})}}));
  return Finish(op, y, 2, options->fused_activation_function());
}

// Weights with a scale for each block of a row, as numbers: the sum over a row is then the product that LiteRT's
// kernels approximate by rounding the input.
absl::StatusOr<TensorRef> FromBlocks(OperatorImport* op, int operand, const tflite::BlockwiseQuantization& blocks) {
  PF_ASSIGN_OR_RETURN(const Shape shape, op->InputShape(operand));
  PF_ASSIGN_OR_RETURN(TensorRef x, op->Input(operand));
  const int64_t size = blocks.block_size(), rows = shape.rank() == 2 ? shape.dim(0) : 0;
  if (rows < 1 || size < 1 || shape.dim(1) % size != 0 || shape.dim(1) > INT32_MAX || rows > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("has weights of shape ", shape.ToString(), " in blocks of ", size, ", expected rows of blocks"));
  }
  const auto count = static_cast<int32_t>(shape.dim(1) / size), height = static_cast<int32_t>(rows);
  const auto of_blocks = [&](int32_t tensor, absl::string_view what) -> absl::StatusOr<TensorRef> {
    SubgraphImport& subgraph = op->subgraph();
    const uint32_t limit = subgraph.subgraph().tensors()->size();
    if (tensor < 0 || static_cast<uint32_t>(tensor) >= limit) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " of blocks: found tensor ", tensor, ", expected less than ", limit));
    }
    PF_ASSIGN_OR_RETURN(const Tensor* value, subgraph.ConstantOf(tensor));
    if (value == nullptr || value->num_elements() != rows * count) {
      return absl::InvalidArgumentError(absl::StrCat(what, " of blocks: found ",
                                                     value == nullptr ? 0 : value->num_elements(),
                                                     " constants, expected ", rows * count));
    }
    PF_ASSIGN_OR_RETURN(TensorRef numbers, subgraph.ValueOf(tensor));
    PF_ASSIGN_OR_RETURN(numbers, op->Emit(ops::kCast, {numbers}, {{"DstT", AttrValue::Type(DType::kFloat)}}));
    PF_ASSIGN_OR_RETURN(const TensorRef target, op->Ints({height, count, 1}));
    return op->Emit(ops::kReshape, {numbers, target});
  };
  PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kCast, {x}, {{"DstT", AttrValue::Type(DType::kFloat)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef split, op->Ints({height, count, static_cast<int32_t>(size)}));
  PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kReshape, {x, split}));
  if (blocks.zero_points() > 0) {  // 0 means none.
    PF_ASSIGN_OR_RETURN(const TensorRef points, of_blocks(blocks.zero_points(), "zero points"));
    PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kSub, {x, points}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef scales, of_blocks(blocks.scales(), "scales"));
  PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kMul, {x, scales}));
  PF_ASSIGN_OR_RETURN(const TensorRef whole, op->Ints({height, static_cast<int32_t>(shape.dim(1))}));
  return op->Emit(ops::kReshape, {x, whole});
}

// Weights are [out, in]. The input is flattened to rows of that width.
Results FullyConnected(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::FullyConnectedOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  if (options->weights_format() != tflite::FullyConnectedOptionsWeightsFormat::DEFAULT) {
    return absl::UnimplementedError("has shuffled weights, which are not supported");
  }
  // LiteRT's reference kernel rescales sums of int8 and int16 in double.
  if (op->InputTensor(0).type() != tflite::TensorType::UINT8) op->SetRounding("exact");
  DeclareDynamic(op, 0, options->asymmetric_quantize_inputs());
  PF_ASSIGN_OR_RETURN(const Shape input, op->InputShape(0));
  PF_ASSIGN_OR_RETURN(const Shape weights, op->InputShape(1));
  PF_ASSIGN_OR_RETURN(const Shape output, op->OutputShape(0));
  if (weights.rank() != 2 || weights.dim(1) > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("has weights of shape ", weights.ToString(), ", expected two dimensions"));
  }
  TensorRef x;
  TensorRef filter;
  const auto* quantization = op->InputTensor(1).quantization();
  const auto* blocks = quantization == nullptr ? nullptr : quantization->details_as_BlockwiseQuantization();
  if (blocks != nullptr && op->InputType(0) == DType::kFloat) {
    PF_ASSIGN_OR_RETURN(filter, FromBlocks(op, 1, *blocks));
  } else {
    PF_ASSIGN_OR_RETURN(filter, op->Input(1));
  }
  if (input.rank() == 2 && input.dim(1) == weights.dim(1)) {
    PF_ASSIGN_OR_RETURN(x, op->Input(0));
  } else {
    PF_ASSIGN_OR_RETURN(x, Reshaped(op, 0, {-1, static_cast<int32_t>(weights.dim(1))}));
  }
  PF_ASSIGN_OR_RETURN(TensorRef y, op->Emit(ops::kMatMul, {x, filter}, {{"transpose_b", AttrValue::Bool(true)}}));
  PF_ASSIGN_OR_RETURN(std::vector<TensorRef> results, Finish(op, y, 2, options->fused_activation_function()));
  if (!options->keep_num_dims() || output.rank() == 2) return results;
  // Keeps the leading dimensions of the input.
  std::vector<int32_t> dims;
  int num_open = 0;
  for (const int64_t dim : output.dims()) {
    num_open += dim < 0 ? 1 : 0;
    dims.push_back(static_cast<int32_t>(dim));
  }
  if (num_open > 1) return absl::UnimplementedError("keeps several dimensions of unknown size, which is not supported");
  PF_ASSIGN_OR_RETURN(const TensorRef shape, op->Ints(dims));
  PF_ASSIGN_OR_RETURN(results[0], op->Emit(ops::kReshape, {results[0], shape}));
  return results;
}

Results BatchMatMul(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::BatchMatMulOptions>();
  DeclareDynamic(op, 0, options != nullptr && options->asymmetric_quantize_inputs());
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kBatchMatMulV2, absl::MakeConstSpan(inputs).subspan(0, 2),
                               {{"adj_x", AttrValue::Bool(options != nullptr && options->adj_x())},
                                {"adj_y", AttrValue::Bool(options != nullptr && options->adj_y())}}));
  return std::vector<TensorRef>{y};
}

absl::StatusOr<TensorRef> Pooled(OperatorImport* op, Op pool, TensorRef x, const tflite::Pool2DOptions& options) {
  return op->Emit(pool, {x},
                  {{"ksize", Window(options.filter_height(), options.filter_width())},
                   {"strides", Window(options.stride_h(), options.stride_w())},
                   {"padding", PaddingAttr(options.padding())}});
}

template <ops::OpId kPool>
Results Pool(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::Pool2DOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, Pooled(op, kPool, x, *options));
  return Finish(op, y, 1, options->fused_activation_function());
}

// Computes the root mean square over the cells inside the image.
Results L2Pool(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::Pool2DOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef square, op->Emit(ops::kSquare, {x}));
  PF_ASSIGN_OR_RETURN(const TensorRef mean, Pooled(op, ops::kAvgPool, square, *options));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSqrt, {mean}));
  return Finish(op, y, 1, options->fused_activation_function());
}

Results Softmax(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::SoftmaxOptions>();
  PF_ASSIGN_OR_RETURN(TensorRef x, op->Input(0));
  const float beta = options == nullptr ? 1.f : options->beta();
  if (beta != 1) {
    PF_ASSIGN_OR_RETURN(const TensorRef factor, op->ScalarLike(x, beta));
    PF_ASSIGN_OR_RETURN(x, op->Emit(ops::kMul, {x, factor}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSoftmax, {x}));
  return std::vector<TensorRef>{y};
}

// Computes x / max(|x|, 1e-6) along the last dimension. The constant is that of LiteRT's float kernel.
Results L2Normalization(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::L2NormOptions>();
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef least, op->ScalarLike(x, 1e-6));
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(-1)));
  PF_ASSIGN_OR_RETURN(const TensorRef square, op->Emit(ops::kSquare, {x}));
  PF_ASSIGN_OR_RETURN(const TensorRef sum, op->Emit(ops::kSum, {square, axis}, {{"keep_dims", AttrValue::Bool(true)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef length, op->Emit(ops::kSqrt, {sum}));
  PF_ASSIGN_OR_RETURN(const TensorRef divisor, op->Emit(ops::kMaximum, {length, least}));
  PF_ASSIGN_OR_RETURN(const TensorRef quotient, op->Emit(ops::kRealDiv, {x, divisor}));
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Activate(quotient, options == nullptr ? tflite::ActivationFunctionType::NONE
                                                                : options->fused_activation_function()));
  return std::vector<TensorRef>{y};
}

Results LocalResponseNormalization(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::LocalResponseNormalizationOptions>();
  PF_RETURN_IF_ERROR(RequireOptions(options));
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kLRN, {x},
                                                  {{"depth_radius", AttrValue::Int(options->radius())},
                                                   {"bias", AttrValue::Float(options->bias())},
                                                   {"alpha", AttrValue::Float(options->alpha())},
                                                   {"beta", AttrValue::Float(options->beta())}}));
  return std::vector<TensorRef>{y};
}

template <ops::OpId kOp, typename Options>
Results Resize(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<Options>();
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(kOp, inputs,
               {{"align_corners", AttrValue::Bool(options != nullptr && options->align_corners())},
                {"half_pixel_centers", AttrValue::Bool(options != nullptr && options->half_pixel_centers())}}));
  return std::vector<TensorRef>{y};
}

Results Rfft2D(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kRFFT2D, inputs, {{"Tcomplex", AttrValue::Type(DType::kComplex64)}}));
  return std::vector<TensorRef>{y};
}

// Pads the indices to the maximum number.
template <ops::OpId kOp>
Results NonMaxSuppression(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(kOp, inputs, {{"pad_to_max_output_size", AttrValue::Bool(true)}}));
  return AllOutputs(node, op->num_outputs());
}

// Options are a FlexBuffers map.
Results DetectionPostProcess(OperatorImport* op) {
  const auto* bytes = op->op().custom_options();
  if (bytes == nullptr || bytes->size() == 0) return absl::InvalidArgumentError("has no options");
  // With marks of visited bytes, the time is linear even if values are shared.
  std::vector<uint8_t> visited;
  if (!flexbuffers::VerifyBuffer(bytes->data(), bytes->size(), &visited)) {
    return absl::InvalidArgumentError("has options that are no valid FlexBuffers");
  }
  const flexbuffers::Reference root = flexbuffers::GetRoot(bytes->data(), bytes->size());
  if (!root.IsMap()) return absl::InvalidArgumentError("has options that are no map");
  const flexbuffers::Map map = root.AsMap();
  OperatorImport::Attrs attrs;
  for (const char* name : {"max_detections", "max_classes_per_detection", "detections_per_class", "num_classes"}) {
    if (map[name].IsNull() && absl::string_view(name) == "detections_per_class") continue;
    if (!map[name].IsNumeric()) return absl::InvalidArgumentError(absl::StrCat("lacks the option '", name, "'"));
    attrs.emplace_back(name, AttrValue::Int(map[name].AsInt64()));
  }
  for (const char* name : {"nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"}) {
    if (!map[name].IsNumeric()) return absl::InvalidArgumentError(absl::StrCat("lacks the option '", name, "'"));
    attrs.emplace_back(name, AttrValue::Float(map[name].AsFloat()));
  }
  attrs.emplace_back("use_regular_nms",
                     AttrValue::Bool(map["use_regular_nms"].IsBool() && map["use_regular_nms"].AsBool()));
  static const Op kOp = Op::Named("TFLite_Detection_PostProcess");
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(kOp, absl::MakeConstSpan(inputs).subspan(0, 3), attrs));
  return AllOutputs(node, 4);
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::CONV_2D, 2, 1, Conv2D, Codes::kComputed,
     Form({ops::kConv2D}, kTakesActivation | kTakesBias, ExportConv2D, "float", "1.5 1.14 1.14 2.3 2.4 2.9 2.11 2.15",
          "uint8 int8:3 int16:4")},
    {BuiltinOperator::DEPTHWISE_CONV_2D, 2, 1, DepthwiseConv2D, Codes::kComputed,
     Form({ops::kDepthwiseConv2dNative}, kTakesActivation | kTakesBias, ExportDepthwiseConv2D, "float",
          "1.5 1.12 1.14 2.2 2.3 2.3 2.11", "uint8 int8:3 int16:5")},
    {BuiltinOperator::TRANSPOSE_CONV, 3, 1, TransposeConv, Codes::kComputed,
     Form({ops::kConv2DBackpropInput}, kTakesActivation | kTakesBias, ExportTransposeConv, "@2 float",
          "1.9 2.2 2.3 2.13 2.15", "uint8 int8:2 int16:3")},
    {BuiltinOperator::CONV_3D, 2, 1, Conv3D, Codes::kRefused,
     Form({ops::kConv3D}, kTakesActivation | kTakesBias, ExportConv3D, "float", "2.5")},
    {BuiltinOperator::FULLY_CONNECTED, 2, 1, FullyConnected, Codes::kComputed,
     Form({ops::kMatMul, ops::kBatchMatMulV2, ops::kBatchMatMulV3, ops::kBatchMatMul}, kTakesActivation | kTakesBias,
          ExportFullyConnected, "float", "1.5 1.10 1.14 1.14 2.0 2.1 2.3 2.3 2.3 2.11 2.15 2.17 2.18 2.21",
          "uint8 int8:4 int16:7")},
    {BuiltinOperator::BATCH_MATMUL, 2, 1, BatchMatMul, Codes::kComputed,
     Form({ops::kBatchMatMulV2, ops::kBatchMatMulV3, ops::kBatchMatMul, ops::kMatMul}, kPlain, ExportBatchMatMul,
          "float", "2.3 2.3 2.4 2.5", "int8:2 int16:3")},
    {BuiltinOperator::AVERAGE_POOL_2D, 1, 1, Pool<ops::kAvgPool>, Codes::kComputed,
     Form({ops::kAvgPool}, kTakesActivation, ExportPool, "float", "1.5 1.14 2.3", "uint8 int8:2 int16:3")},
    {BuiltinOperator::MAX_POOL_2D, 1, 1, Pool<ops::kMaxPool>, Codes::kMoved,
     Form({ops::kMaxPool}, kTakesActivation, ExportPool, "float", "1.5 1.14 2.3", "uint8 int8:2 int16:3")},
    {BuiltinOperator::L2_POOL_2D, 1, 1, L2Pool},
    {BuiltinOperator::SOFTMAX, 1, 1, Softmax, Codes::kComputed,
     Form({ops::kSoftmax}, kPlain, ExportSoftmax, "float", "1.5 1.14 2.3 2.23", "uint8 int8:2 int16:3")},
    {BuiltinOperator::L2_NORMALIZATION, 1, 1, L2Normalization, Codes::kComputed,
     Form({ops::kMul, ops::kRealDiv}, kComposed, ExportL2Normalization, "float", "1.5 1.14", "uint8 int8:2")},
    {BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION, 1, 1, LocalResponseNormalization, Codes::kRefused,
     Form({ops::kLRN}, kPlain, ExportLocalResponseNormalization, "float", "1.5")},
    {BuiltinOperator::RESIZE_BILINEAR, 2, 1, Resize<ops::kResizeBilinear, tflite::ResizeBilinearOptions>,
     Codes::kComputed,
     Form({ops::kResizeBilinear}, kPlain, ExportResizeBilinear, "float", "1.7 1.14 2.2 2.5", "uint8 int8:2 int16:4")},
    {BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, 2, 1,
     Resize<ops::kResizeNearestNeighbor, tflite::ResizeNearestNeighborOptions>, Codes::kMoved,
     Form({ops::kResizeNearestNeighbor}, kPlain, ExportResizeNearestNeighbor, "float", "1.13.1 1.14 2.3 2.4",
          "uint8 int8:2 int16:4")},
    {BuiltinOperator::RFFT2D, 2, 1, Rfft2D, Codes::kRefused,
     Form({ops::kRFFT2D}, kPlain, ExportRfft2D, "float", "2.5")},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V4, 5, 2, NonMaxSuppression<ops::kNonMaxSuppressionV4>, Codes::kRefused,
     Form({ops::kNonMaxSuppressionV4}, kPlain, ExportNonMaxSuppression, "float", "2.1")},
    {BuiltinOperator::NON_MAX_SUPPRESSION_V5, 6, 3, NonMaxSuppression<ops::kNonMaxSuppressionV5>, Codes::kRefused,
     Form({ops::kNonMaxSuppressionV5}, kPlain, ExportNonMaxSuppression, "float", "2.1")},
};

constexpr CustomOperatorRow kCustomRows[] = {
    {"Convolution2DTransposeBias", {BuiltinOperator::CUSTOM, 3, 1, Convolution2DTransposeBias}},
    {"TFLite_Detection_PostProcess", {BuiltinOperator::CUSTOM, 3, 4, DetectionPostProcess, Codes::kExact}},
};

}  // namespace

absl::Span<const OperatorRow> NeuralOperators() { return kRows; }
absl::Span<const CustomOperatorRow> CustomOperators() { return kCustomRows; }

}  // namespace permafrost
