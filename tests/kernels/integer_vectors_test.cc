// Computes every recorded case of integer_vectors/ with the integer kernels and compares the outputs with those of
// LiteRT's reference kernels: codes bit for bit, floats of hybrid operators to 1e-6 of the largest value.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"
#include "runtime_check/kernels/integer/integer_convolution.h"
#include "runtime_check/kernels/integer/integer_elementwise.h"
#include "runtime_check/kernels/integer/integer_hybrid.h"
#include "runtime_check/kernels/integer/integer_reduction.h"
#include "runtime_check/kernels/integer/integer_resize.h"
#include "tests/kernels/integer_cases.h"

namespace permafrost {
namespace {

FusedActivation ActivationOf(const IntegerCase& recorded) {
  return static_cast<FusedActivation>(static_cast<int>(recorded.option("fusedActivationFunction")));
}

// An axis of a window with TensorFlow Lite's padding: 0 SAME, 1 VALID.
WindowAxis AxisOf(int64_t input, int64_t taps, int64_t stride, int64_t dilation, bool is_same) {
  WindowAxis axis;
  axis.input = input;
  axis.taps = taps;
  axis.stride = stride;
  axis.dilation = dilation;
  const int64_t extent = (taps - 1) * dilation + 1;
  axis.output = is_same ? (input + stride - 1) / stride : (input - extent + stride) / stride;
  if (is_same) axis.pad_before = std::max<int64_t>((axis.output - 1) * stride + extent - input, 0) / 2;
  return axis;
}

IntegerWeighting WeightingOf(const IntegerCase& recorded, const IntegerOperand& input, const IntegerOperand& filter,
                             size_t bias, Rounding rounding) {
  IntegerWeighting weighting;
  weighting.input = input.affine();
  weighting.output = recorded.output.affine();
  weighting.filter_scales = filter.scales;
  weighting.filter_zero_point = filter.affine().zero_point;
  if (recorded.has_input(bias)) {
    weighting.bias = recorded.inputs[bias].type == "int64" ? BiasType::kInt64 : BiasType::kInt32;
  }
  weighting.activation = ActivationOf(recorded);
  weighting.rounding = rounding;
  return weighting;
}

const void* BiasOf(const IntegerCase& recorded, size_t bias) {
  return recorded.has_input(bias) ? recorded.inputs[bias].bytes.data() : nullptr;
}

using Memory = std::vector<int64_t>;  // Aligned to 8 bytes.
Memory Allocate(int64_t bytes) { return Memory(bytes / 8 + 1); }
char* BytesAt(Memory& memory) { return reinterpret_cast<char*>(memory.data()); }

// Computes all rows in two parts.
template <typename Operator>
void ComputeInParts(const Operator& made, const void* input, Memory& packed, int64_t rows, char* output) {
  Memory scratch = Allocate(made.scratch_size());
  made.Compute(input, BytesAt(packed), 0, rows / 3, BytesAt(scratch), output);
  made.Compute(input, BytesAt(packed), rows / 3, rows, BytesAt(scratch), output);
}

ConvolutionSizes SizesOf(const IntegerCase& recorded, bool is_depthwise) {
  const IntegerOperand &x = recorded.inputs[0], &w = recorded.inputs[1];
  ConvolutionSizes sizes;
  sizes.batch = x.dim(0);
  sizes.input_channels = x.dim(3);
  sizes.output_channels = is_depthwise ? w.dim(3) : w.dim(0);
  if (!is_depthwise) sizes.groups = x.dim(3) / w.dim(3);
  const bool is_same = recorded.option("padding") == 0;
  sizes.window.y = AxisOf(x.dim(1), w.dim(1), recorded.option("strideH"), recorded.option("dilationHFactor"), is_same);
  sizes.window.x = AxisOf(x.dim(2), w.dim(2), recorded.option("strideW"), recorded.option("dilationWFactor"), is_same);
  return sizes;
}

absl::Status Convolution(const IntegerCase& recorded, bool is_depthwise, char* output) {
  const IntegerOperand &x = recorded.inputs[0], &w = recorded.inputs[1];
  const ConvolutionSizes sizes = SizesOf(recorded, is_depthwise);
  if (x.type == "float32") {
    PF_ASSIGN_OR_RETURN(const HybridConvolution made, HybridConvolution::Make(sizes, is_depthwise, sizes.OutputFirst(),
                                                                              w.scales, false, ActivationOf(recorded)));
    Memory scratch = Allocate(made.scratch_size()), packed = Allocate(made.packed_size());
    made.Pack(w.data<int8_t>(), BytesAt(packed));
    std::vector<int8_t> codes(made.image_size());
    for (int64_t i = 0; i < made.images(); ++i) {
      const RowScale scale = made.Quantize(x.data<float>() + i * made.image_size(), codes.data());
      float* to = reinterpret_cast<float*>(output) + i * made.output_size();
      const int64_t middle = made.rows() / 3;
      for (const auto& [first, last] : {std::pair(int64_t{0}, middle), std::pair(middle, made.rows())}) {
        made.Compute(codes.data(), scale, BytesAt(packed), static_cast<const float*>(BiasOf(recorded, 2)), first, last,
                     BytesAt(scratch), to);
      }
    }
    return absl::OkStatus();
  }
  const IntegerWeighting weighting = WeightingOf(recorded, x, w, 2, Rounding::kTwice);
  if (is_depthwise) {
    PF_ASSIGN_OR_RETURN(const IntegerDepthwise made, IntegerDepthwise::Make(weighting, sizes));
    Memory packed = Allocate(made.packed_size());
    made.Pack(w.bytes.data(), BiasOf(recorded, 2), BytesAt(packed));
    ComputeInParts(made, x.bytes.data(), packed, made.rows(), output);
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const IntegerConvolution made, IntegerConvolution::Make(weighting, sizes, sizes.OutputFirst()));
  Memory packed = Allocate(made.packed_size());
  made.Pack(w.bytes.data(), BiasOf(recorded, 2), BytesAt(packed));
  ComputeInParts(made, x.bytes.data(), packed, made.rows(), output);
  return absl::OkStatus();
}

absl::Status TransposeConvolution(const IntegerCase& recorded, char* output) {
  const IntegerOperand &w = recorded.inputs[1], &x = recorded.inputs[2], &y = recorded.output;
  ConvolutionSizes sizes;
  sizes.batch = x.dim(0);
  sizes.input_channels = x.dim(3);
  sizes.output_channels = w.dim(0);
  const bool is_same = recorded.option("padding") == 0;
  sizes.window.y = AxisOf(y.dim(1), w.dim(1), recorded.option("strideH"), 1, is_same);
  sizes.window.x = AxisOf(y.dim(2), w.dim(2), recorded.option("strideW"), 1, is_same);
  PF_ASSIGN_OR_RETURN(
      const IntegerTransposeConvolution made,
      IntegerTransposeConvolution::Make(WeightingOf(recorded, x, w, 3, Rounding::kTwice), sizes, sizes.OutputFirst()));
  Memory packed = Allocate(made.packed_size());
  made.Pack(w.bytes.data(), BiasOf(recorded, 3), BytesAt(packed));
  ComputeInParts(made, x.bytes.data(), packed, made.rows(), output);
  return absl::OkStatus();
}

absl::Status Dense(const IntegerCase& recorded, char* output) {
  const IntegerOperand &x = recorded.inputs[0], &w = recorded.inputs[1];
  const int64_t depth = w.dim(1), columns = w.dim(0), rows = x.num_elements() / depth;
  if (x.type == "float32") {
    PF_ASSIGN_OR_RETURN(const HybridDense made,
                        HybridDense::Make(depth, columns, w.scales, recorded.option("asymmetricQuantizeInputs") != 0,
                                          ActivationOf(recorded)));
    Memory scratch = Allocate(made.scratch_size()), packed = Allocate(made.packed_size());
    made.Pack(w.data<int8_t>(), BytesAt(packed));
    made.Compute(x.data<float>(), BytesAt(packed), static_cast<const float*>(BiasOf(recorded, 2)), 0, rows,
                 BytesAt(scratch), reinterpret_cast<float*>(output));
    return absl::OkStatus();
  }
  const Rounding rounding = x.type == "uint8" ? Rounding::kTwice : Rounding::kExact;
  IntegerProduct::Depth layout;
  layout.inputs = depth;
  layout.input_step = 1;
  PF_ASSIGN_OR_RETURN(const IntegerProduct made,
                      IntegerProduct::Make(WeightingOf(recorded, x, w, 2, rounding), layout, columns, depth));
  Memory packed = Allocate(made.packed_size());
  made.Pack(w.bytes.data(), BiasOf(recorded, 2), BytesAt(packed));
  ComputeInParts(made, x.bytes.data(), packed, rows, output);
  return absl::OkStatus();
}

absl::Status MatrixProduct(const IntegerCase& recorded, char* output) {
  const IntegerOperand &a = recorded.inputs[0], &b = recorded.inputs[1];
  IntegerMatrixProduct::Sizes sizes;
  sizes.transpose_left = recorded.option("adjX") != 0;
  sizes.transpose_right = recorded.option("adjY") != 0;
  sizes.rows = recorded.output.dim(-2);
  sizes.columns = recorded.output.dim(-1);
  sizes.depth = sizes.transpose_left ? a.dim(-2) : a.dim(-1);
  const int64_t batches = recorded.output.num_elements() / (sizes.rows * sizes.columns);
  const int64_t element = a.type == "int16" ? 2 : 1;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const char* right = b.bytes.data() + batch % (b.num_elements() / (sizes.depth * sizes.columns)) * sizes.depth *
                                             sizes.columns * element;
    if (a.type == "float32") {
      PF_ASSIGN_OR_RETURN(
          const HybridMatrixProduct made,
          HybridMatrixProduct::Make(sizes, b.scales[0], recorded.option("asymmetricQuantizeInputs") != 0));
      Memory scratch = Allocate(made.scratch_size());
      made.Compute(a.data<float>() + batch * sizes.rows * sizes.depth, reinterpret_cast<const int8_t*>(right), 0,
                   sizes.rows, BytesAt(scratch), reinterpret_cast<float*>(output) + batch * sizes.rows * sizes.columns);
      continue;
    }
    PF_ASSIGN_OR_RETURN(const IntegerMatrixProduct made,
                        IntegerMatrixProduct::Make(a.affine(), b.affine(), recorded.output.affine(), sizes));
    Memory packed = Allocate(made.packed_size());
    made.Pack(right, BytesAt(packed));
    const int64_t left = batch % (a.num_elements() / (sizes.rows * sizes.depth)) * sizes.rows * sizes.depth;
    ComputeInParts(made, a.bytes.data() + left * element, packed, sizes.rows,
                   output + batch * sizes.rows * sizes.columns * element);
  }
  return absl::OkStatus();
}

// Calls visit(element, element of a, element of b) for each output element of a broadcast.
void Broadcast(const IntegerCase& recorded, const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const IntegerOperand* operands[2] = {&recorded.inputs[0], &recorded.inputs[1]};
  const auto& shape = recorded.output.shape;
  for (int64_t i = 0; i < recorded.output.num_elements(); ++i) {
    int64_t at[2] = {0, 0}, step[2] = {1, 1}, rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      for (int k = 0; k < 2; ++k) {
        const int64_t missing = static_cast<int64_t>(shape.size() - operands[k]->shape.size());
        if (static_cast<int64_t>(d) < missing) continue;
        const int64_t size = operands[k]->shape[d - missing];
        if (size > 1) at[k] += index * step[k];
        step[k] *= size;
      }
    }
    visit(i, at[0], at[1]);
  }
}

absl::Status Binary(const IntegerCase& recorded, BinaryOp op, char* output) {
  const IntegerOperand &a = recorded.inputs[0], &b = recorded.inputs[1];
  const auto pot = recorded.options.find("potScaleInt16");
  const bool powers_of_two = a.type == "int16" && pot != recorded.options.end() && pot->second != 0;
  const bool has_activation = recorded.options.count("fusedActivationFunction") != 0;
  PF_ASSIGN_OR_RETURN(
      const IntegerBinary made,
      IntegerBinary::Make(op, a.affine(), b.affine(), recorded.output.affine(),
                          has_activation ? ActivationOf(recorded) : FusedActivation::kNone, powers_of_two));
  const int64_t size = a.type == "int16" ? 2 : 1;
  if (a.shape == b.shape) return made.Compute(a.num_elements(), a.bytes.data(), 1, b.bytes.data(), 1, output);
  absl::Status status;
  Broadcast(recorded, [&](int64_t i, int64_t at_a, int64_t at_b) {
    status.Update(made.Compute(1, a.bytes.data() + at_a * size, 0, b.bytes.data() + at_b * size, 0, output + i * size));
  });
  return status;
}

absl::Status Comparison(const IntegerCase& recorded, CompareOp op, char* output) {
  const IntegerOperand &a = recorded.inputs[0], &b = recorded.inputs[1];
  PF_ASSIGN_OR_RETURN(const IntegerComparison made, IntegerComparison::Make(op, a.affine(), b.affine()));
  Broadcast(recorded, [&](int64_t i, int64_t at_a, int64_t at_b) {
    const int64_t size = a.type == "int16" ? 2 : 1;
    made.Compute(1, a.bytes.data() + at_a * size, 0, b.bytes.data() + at_b * size, 0,
                 reinterpret_cast<bool*>(output) + i);
  });
  return absl::OkStatus();
}

absl::Status Unary(const IntegerCase& recorded, UnaryOp op, char* output) {
  const auto alpha = recorded.options.find("alpha");
  PF_ASSIGN_OR_RETURN(const IntegerUnary made,
                      IntegerUnary::Make(op, recorded.inputs[0].affine(), recorded.output.affine(),
                                         alpha == recorded.options.end() ? 0.0f : static_cast<float>(alpha->second)));
  return made.Compute(recorded.output.num_elements(), recorded.inputs[0].bytes.data(), output);
}

absl::Status Pool(const IntegerCase& recorded, PoolOp op, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  const bool is_same = recorded.option("padding") == 0;
  Window window;
  window.y = AxisOf(x.dim(1), recorded.option("filterHeight"), recorded.option("strideH"), 1, is_same);
  window.x = AxisOf(x.dim(2), recorded.option("filterWidth"), recorded.option("strideW"), 1, is_same);
  PF_ASSIGN_OR_RETURN(const IntegerPool made, IntegerPool::Make(op, recorded.output.affine(), ActivationOf(recorded),
                                                                x.dim(0), x.dim(3), window));
  Memory scratch = Allocate(made.scratch_size());
  made.Compute(x.bytes.data(), 0, made.rows() / 3, BytesAt(scratch), output);
  made.Compute(x.bytes.data(), made.rows() / 3, made.rows(), BytesAt(scratch), output);
  return absl::OkStatus();
}

absl::Status Reduction(const IntegerCase& recorded, ReduceOp op, char* output) {
  const IntegerOperand &x = recorded.inputs[0], &axes = recorded.inputs[1];
  bool is_reduced[8] = {};
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int32_t axis = axes.data<int32_t>()[i];
    is_reduced[axis < 0 ? axis + static_cast<int32_t>(x.shape.size()) : axis] = true;
  }
  PF_ASSIGN_OR_RETURN(const IntegerReduction made,
                      IntegerReduction::Make(op, x.affine(), recorded.output.affine(), x.shape,
                                             absl::MakeConstSpan(is_reduced, x.shape.size())));
  made.Compute(x.bytes.data(), 0, made.outputs() / 3, output);
  made.Compute(x.bytes.data(), made.outputs() / 3, made.outputs(), output);
  return absl::OkStatus();
}

ResizeSizes ResizeSizesOf(const IntegerCase& recorded) {
  const IntegerOperand &x = recorded.inputs[0], &y = recorded.output;
  ResizeSizes sizes;
  sizes.batch = x.dim(0);
  sizes.input_height = x.dim(1);
  sizes.input_width = x.dim(2);
  sizes.output_height = y.dim(1);
  sizes.output_width = y.dim(2);
  sizes.channels = x.dim(3);
  sizes.align_corners = recorded.option("alignCorners") != 0;
  sizes.half_pixel_centers = recorded.option("halfPixelCenters") != 0;
  return sizes;
}

template <typename Resize>
absl::Status ResizeCase(const IntegerCase& recorded, char* output) {
  PF_ASSIGN_OR_RETURN(const Resize made, Resize::Make(recorded.inputs[0].affine().type, ResizeSizesOf(recorded)));
  made.Compute(recorded.inputs[0].bytes.data(), 0, made.rows() / 3, output);
  made.Compute(recorded.inputs[0].bytes.data(), made.rows() / 3, made.rows(), output);
  return absl::OkStatus();
}

absl::Status Quantize(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  if (x.type != "float32") return Unary(recorded, UnaryOp::kRequantize, output);
  QuantizeFloats(recorded.output.affine(), x.num_elements(), x.data<float>(), output);
  return absl::OkStatus();
}

absl::Status Dequantize(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  auto* y = reinterpret_cast<float*>(output);
  if (x.scales.size() == 1) {
    DequantizeCodes(x.affine(), x.num_elements(), x.bytes.data(), y);
    return absl::OkStatus();
  }
  int64_t inner = 1;
  for (size_t d = x.axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  for (int64_t i = 0; i < x.num_elements(); i += inner) {
    const int64_t channel = i / inner % x.shape[x.axis];
    Affine affine = x.affine();
    affine.scale = x.scales[channel];
    affine.zero_point = x.zero_points[channel];
    DequantizeChannel(affine, inner, x.bytes.data() + i, y + i);
  }
  return absl::OkStatus();
}

absl::Status Softmax(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  PF_ASSIGN_OR_RETURN(const IntegerSoftmax made,
                      IntegerSoftmax::Make(x.affine(), recorded.output.affine(),
                                           static_cast<float>(recorded.option("beta")), x.dim(-1)));
  made.Compute(x.num_elements() / x.dim(-1), x.bytes.data(), output);
  return absl::OkStatus();
}

absl::Status LogSoftmax(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  PF_ASSIGN_OR_RETURN(const IntegerLogSoftmax made,
                      IntegerLogSoftmax::Make(x.affine(), recorded.output.affine(), 1.0f, x.dim(-1)));
  made.Compute(x.num_elements() / x.dim(-1), x.bytes.data(), output);
  return absl::OkStatus();
}

absl::Status L2Normalization(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  PF_ASSIGN_OR_RETURN(const IntegerL2Normalization made,
                      IntegerL2Normalization::Make(x.affine(), recorded.output.affine(), x.dim(-1)));
  made.Compute(x.num_elements() / x.dim(-1), x.bytes.data(), output);
  return absl::OkStatus();
}

absl::Status Concatenation(const IntegerCase& recorded, char* output) {
  const auto rank = static_cast<int>(recorded.output.shape.size());
  const int axis = (static_cast<int>(recorded.option("axis")) + rank) % rank;
  int64_t inner = 1;
  for (int d = axis + 1; d < rank; ++d) inner *= recorded.output.shape[d];
  int64_t offset = 0;
  for (const IntegerOperand& x : recorded.inputs) {
    PF_ASSIGN_OR_RETURN(const ConcatenationInput made, ConcatenationInput::Make(x.affine(), recorded.output.affine()));
    const int64_t run = x.shape[axis] * inner, all = recorded.output.shape[axis] * inner;
    for (int64_t i = 0; i < x.num_elements() / run; ++i) {
      made.Compute(run, x.data<uint8_t>() + i * run, reinterpret_cast<uint8_t*>(output) + i * all + offset);
    }
    offset += run;
  }
  return absl::OkStatus();
}

// Operators that move codes, which other kernels compute, and recurrent ones, which integer_recurrent_test computes.
bool IsElsewhere(const IntegerCase& recorded) {
  static const std::vector<std::string> kOthers = {"ARG_MAX",
                                                   "EMBEDDING_LOOKUP",
                                                   "GATHER",
                                                   "MIRROR_PAD",
                                                   "PAD",
                                                   "PADV2",
                                                   "SPACE_TO_BATCH_ND",
                                                   "SVDF",
                                                   "SVDF_MADE",
                                                   "UNIDIRECTIONAL_SEQUENCE_LSTM",
                                                   "UNIDIRECTIONAL_SEQUENCE_RNN"};
  if (recorded.op == "CONCATENATION" && recorded.output.type != "uint8") return true;
  return std::find(kOthers.begin(), kOthers.end(), recorded.op) != kOthers.end();
}

absl::Status Compute(const IntegerCase& recorded, char* output) {
  static const std::map<std::string, UnaryOp> kUnary = {
      {"ABS", UnaryOp::kAbs},
      {"ELU", UnaryOp::kElu},
      {"EXP", UnaryOp::kExp},
      {"HARD_SWISH", UnaryOp::kHardSwish},
      {"LEAKY_RELU", UnaryOp::kLeakyRelu},
      {"LOG", UnaryOp::kLog},
      {"LOGISTIC", UnaryOp::kLogistic},
      {"NEG", UnaryOp::kNeg},
      {"RELU", UnaryOp::kRelu},
      {"RELU6", UnaryOp::kRelu6},
      {"RELU_N1_TO_1", UnaryOp::kReluN1To1},
      {"RSQRT", UnaryOp::kRsqrt},
      {"SQRT", UnaryOp::kSqrt},
      {"TANH", UnaryOp::kTanh},
  };
  static const std::map<std::string, BinaryOp> kBinary = {
      {"ADD", BinaryOp::kAdd},
      {"DIV", BinaryOp::kDiv},
      {"MAXIMUM", BinaryOp::kMaximum},
      {"MINIMUM", BinaryOp::kMinimum},
      {"MUL", BinaryOp::kMul},
      {"PRELU", BinaryOp::kPrelu},
      {"SQUARED_DIFFERENCE", BinaryOp::kSquaredDifference},
      {"SUB", BinaryOp::kSub},
  };
  static const std::map<std::string, CompareOp> kCompare = {
      {"EQUAL", CompareOp::kEqual}, {"GREATER_EQUAL", CompareOp::kGreaterEqual}, {"LESS", CompareOp::kLess}};
  static const std::map<std::string, ReduceOp> kReduce = {{"MEAN", ReduceOp::kMean},
                                                          {"REDUCE_MAX", ReduceOp::kMax},
                                                          {"REDUCE_MIN", ReduceOp::kMin},
                                                          {"REDUCE_PROD", ReduceOp::kProd},
                                                          {"SUM", ReduceOp::kSum}};
  const std::string& op = recorded.op;
  if (const auto it = kUnary.find(op); it != kUnary.end()) return Unary(recorded, it->second, output);
  if (const auto it = kBinary.find(op); it != kBinary.end()) return Binary(recorded, it->second, output);
  if (const auto it = kCompare.find(op); it != kCompare.end()) return Comparison(recorded, it->second, output);
  if (const auto it = kReduce.find(op); it != kReduce.end()) return Reduction(recorded, it->second, output);
  if (op == "GELU") {
    return Unary(recorded, recorded.option("approximate") != 0 ? UnaryOp::kGeluApproximate : UnaryOp::kGelu, output);
  }
  if (op == "CONV_2D") return Convolution(recorded, false, output);
  if (op == "DEPTHWISE_CONV_2D") return Convolution(recorded, true, output);
  if (op == "TRANSPOSE_CONV") return TransposeConvolution(recorded, output);
  if (op == "FULLY_CONNECTED") return Dense(recorded, output);
  if (op == "BATCH_MATMUL") return MatrixProduct(recorded, output);
  if (op == "AVERAGE_POOL_2D") return Pool(recorded, PoolOp::kAverage, output);
  if (op == "MAX_POOL_2D") return Pool(recorded, PoolOp::kMax, output);
  if (op == "RESIZE_BILINEAR") return ResizeCase<IntegerResizeBilinear>(recorded, output);
  if (op == "RESIZE_NEAREST_NEIGHBOR") return ResizeCase<IntegerResizeNearest>(recorded, output);
  if (op == "QUANTIZE") return Quantize(recorded, output);
  if (op == "DEQUANTIZE") return Dequantize(recorded, output);
  if (op == "SOFTMAX") return Softmax(recorded, output);
  if (op == "LOG_SOFTMAX") return LogSoftmax(recorded, output);
  if (op == "L2_NORMALIZATION") return L2Normalization(recorded, output);
  if (op == "CONCATENATION") return Concatenation(recorded, output);
  return absl::UnimplementedError("no integer kernel");
}

void ExpectRecorded(const IntegerCase& recorded, const std::string& output) {
  const IntegerOperand& expected = recorded.output;
  if (expected.type == "float32") {
    const auto* found = reinterpret_cast<const float*>(output.data());
    float largest = 0;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      largest = std::max(largest, std::abs(expected.data<float>()[i]));
    }
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      ASSERT_NEAR(found[i], expected.data<float>()[i], 1e-6f * largest) << "element " << i;
    }
    return;
  }
  int64_t wrong = 0, first = -1;
  const int64_t size = expected.bytes.size() / expected.num_elements();
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (std::memcmp(output.data() + i * size, expected.bytes.data() + i * size, size) == 0) continue;
    if (wrong++ == 0) first = i;
  }
  EXPECT_EQ(wrong, 0) << "codes differ of " << expected.num_elements() << ", the first at " << first << ": found "
                      << static_cast<int>(output[first * size]) << ", expected "
                      << static_cast<int>(expected.bytes[first * size]) << " (low bytes)";
}

TEST(IntegerVectorsTest, OutputsAreThoseOfTheReferenceKernels) {
  int checked = 0;
  for (const IntegerCase& recorded : ReadIntegerCases()) {
    if (IsElsewhere(recorded)) continue;
    SCOPED_TRACE(recorded.name);
    std::string output(recorded.output.bytes.size(), '\x55');
    const absl::Status status = Compute(recorded, output.data());
    ASSERT_TRUE(status.ok()) << recorded.name << ": " << status;
    ExpectRecorded(recorded, output);
    ++checked;
  }
  EXPECT_GT(checked, 130);
}

}  // namespace
}  // namespace permafrost
