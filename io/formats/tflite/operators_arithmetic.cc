// Elementwise operators, comparisons, reductions and selections.
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

// Returns the fused activation of the options `Options`, or NONE if there are none.
template <typename Options>
tflite::ActivationFunctionType ActivationOf(const OperatorImport& op) {
  const auto* options = op.op().builtin_options_as<Options>();
  return options == nullptr ? tflite::ActivationFunctionType::NONE : options->fused_activation_function();
}

// Adds a binary op with a fused activation.
template <ops::OpId kOp, typename Options>
Results Binary(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const TensorRef sum, op->Emit(kOp, absl::MakeConstSpan(inputs).subspan(0, 2)));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Activate(sum, ActivationOf<Options>(*op)));
  return std::vector<TensorRef>{y};
}

// Integer division rounds towards zero.
Results Div(OperatorImport* op) {
  const DType type = op->InputType(0);
  const bool is_float = type == DType::kFloat || type == DType::kHalf || type == DType::kDouble;
  return is_float ? Binary<ops::kRealDiv, tflite::DivOptions>(op) : Binary<ops::kTruncateDiv, tflite::DivOptions>(op);
}

// Adds a reduction, whose axes are an operand.
template <ops::OpId kOp>
Results Reduce(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::ReducerOptions>();
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(kOp, absl::MakeConstSpan(inputs).subspan(0, 2),
                               {{"keep_dims", AttrValue::Bool(options != nullptr && options->keep_dims())}}));
  return std::vector<TensorRef>{y};
}

template <ops::OpId kOp>
Results ArgReduce(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(kOp, absl::MakeConstSpan(inputs).subspan(0, 2),
                                                  {{"output_type", AttrValue::Type(op->OutputType(0))}}));
  return std::vector<TensorRef>{y};
}

Results ReluN1To1(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Clamp(x, -1, 1));
  return std::vector<TensorRef>{y};
}

Results Relu0To1(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Clamp(x, 0, 1));
  return std::vector<TensorRef>{y};
}

Results LeakyRelu(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::LeakyReluOptions>();
  PF_ASSIGN_OR_RETURN(
      const TensorRef y,
      op->Emit(ops::kLeakyRelu, {x}, {{"alpha", AttrValue::Float(options == nullptr ? 0.f : options->alpha())}}));
  return std::vector<TensorRef>{y};
}

// Computes max(x, 0) - alpha max(-x, 0).
Results PRelu(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef alpha, op->Input(1));
  PF_ASSIGN_OR_RETURN(const TensorRef positive, op->Emit(ops::kRelu, {x}));
  PF_ASSIGN_OR_RETURN(const TensorRef negated, op->Emit(ops::kNeg, {x}));
  PF_ASSIGN_OR_RETURN(const TensorRef negative, op->Emit(ops::kRelu, {negated}));
  PF_ASSIGN_OR_RETURN(const TensorRef scaled, op->Emit(ops::kMul, {alpha, negative}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kSub, {positive, scaled}));
  return std::vector<TensorRef>{y};
}

// Computes x relu6(x + 3) / 6.
Results HardSwish(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef three, op->ScalarLike(x, 3));
  PF_ASSIGN_OR_RETURN(const TensorRef sixth, op->ScalarLike(x, 1.0 / 6));
  PF_ASSIGN_OR_RETURN(const TensorRef moved, op->Emit(ops::kAddV2, {x, three}));
  PF_ASSIGN_OR_RETURN(const TensorRef gate, op->Emit(ops::kRelu6, {moved}));
  PF_ASSIGN_OR_RETURN(const TensorRef scaled, op->Emit(ops::kMul, {gate, sixth}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kMul, {x, scaled}));
  return std::vector<TensorRef>{y};
}

// Computes x (1 + erf(x / sqrt(2))) / 2, or the approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
Results Gelu(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::GeluOptions>();
  TensorRef inner;
  if (options != nullptr && options->approximate()) {
    PF_ASSIGN_OR_RETURN(const TensorRef cubic, op->ScalarLike(x, 0.044715));
    PF_ASSIGN_OR_RETURN(const TensorRef factor, op->ScalarLike(x, 0.7978845608028654));  // sqrt(2 / pi)
    PF_ASSIGN_OR_RETURN(const TensorRef square, op->Emit(ops::kSquare, {x}));
    PF_ASSIGN_OR_RETURN(const TensorRef cube, op->Emit(ops::kMul, {square, x}));
    PF_ASSIGN_OR_RETURN(const TensorRef scaled, op->Emit(ops::kMul, {cube, cubic}));
    PF_ASSIGN_OR_RETURN(const TensorRef sum, op->Emit(ops::kAddV2, {x, scaled}));
    PF_ASSIGN_OR_RETURN(const TensorRef argument, op->Emit(ops::kMul, {sum, factor}));
    PF_ASSIGN_OR_RETURN(inner, op->Emit(ops::kTanh, {argument}));
  } else {
    PF_ASSIGN_OR_RETURN(const TensorRef root, op->ScalarLike(x, 0.7071067811865476));  // 1 / sqrt(2)
    PF_ASSIGN_OR_RETURN(const TensorRef argument, op->Emit(ops::kMul, {x, root}));
    PF_ASSIGN_OR_RETURN(inner, op->Emit(ops::kErf, {argument}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef one, op->ScalarLike(x, 1));
  PF_ASSIGN_OR_RETURN(const TensorRef half, op->ScalarLike(x, 0.5));
  PF_ASSIGN_OR_RETURN(const TensorRef sum, op->Emit(ops::kAddV2, {inner, one}));
  PF_ASSIGN_OR_RETURN(const TensorRef halved, op->Emit(ops::kMul, {x, half}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kMul, {halved, sum}));
  return std::vector<TensorRef>{y};
}

Results Cast(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kCast, {x}, {{"DstT", AttrValue::Type(op->OutputType(0))}}));
  return std::vector<TensorRef>{y};
}

// Computes scale (code - zero point). Products of a float and a 16-bit integer are exact in double, so only the
// conversion of the product to float rounds.
Results Dequantize(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef numbers, op->Emit(ops::kCast, {x}, {{"DstT", AttrValue::Type(DType::kFloat)}}));
  const auto* quantization = op->InputTensor(0).quantization();
  if (op->InputType(0) == DType::kHalf) return std::vector<TensorRef>{numbers};
  if (quantization == nullptr || quantization->scale() == nullptr || quantization->scale()->size() == 0) {
    return absl::InvalidArgumentError("its operand has no scale");
  }
  if (quantization->details() != nullptr) {
    return absl::UnimplementedError("its operand has scales for blocks or several axes, which are not supported");
  }
  const uint32_t count = quantization->scale()->size();
  PF_ASSIGN_OR_RETURN(const Shape shape, op->InputShape(0));
  std::vector<int64_t> dims;
  if (count > 1) {
    const int axis = quantization->quantized_dimension();
    if (axis < 0 || axis >= shape.rank() || shape.dim(axis) != count) {
      return absl::InvalidArgumentError(
          absl::StrCat("its operand of shape ", shape.ToString(), " has ", count, " scales for dimension ", axis));
    }
    dims.assign(static_cast<size_t>(shape.rank()), 1);
    dims[static_cast<size_t>(axis)] = count;
  }
  const auto* points = quantization->zero_point();
  if (points != nullptr && points->size() != 0 && points->size() != 1 && points->size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("its operand has ", points->size(), " zero points and ", count, " scales"));
  }
  std::vector<float> scales(count), zero_points(count, 0);
  bool is_moved = false;
  for (uint32_t i = 0; i < count; ++i) {
    scales[i] = quantization->scale()->Get(i);
    if (!(scales[i] > 0)) return absl::InvalidArgumentError(absl::StrCat("its operand has the scale ", scales[i]));
    if (points != nullptr && points->size() > 0)
      zero_points[i] = static_cast<float>(points->Get(points->size() == 1 ? 0 : i));
    is_moved |= zero_points[i] != 0;
  }
  TensorRef difference = numbers;
  if (is_moved) {
    PF_ASSIGN_OR_RETURN(const TensorRef point, op->Const(Tensor::FromVector(Shape(dims), std::move(zero_points))));
    PF_ASSIGN_OR_RETURN(difference, op->Emit(ops::kSub, {numbers, point}));
  }
  PF_ASSIGN_OR_RETURN(const TensorRef scale, op->Const(Tensor::FromVector(Shape(dims), std::move(scales))));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kMul, {difference, scale}));
  return std::vector<TensorRef>{y};
}

Results FakeQuant(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::FakeQuantOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kFakeQuantWithMinMaxArgs, {x},
                                                  {{"min", AttrValue::Float(options->min())},
                                                   {"max", AttrValue::Float(options->max())},
                                                   {"num_bits", AttrValue::Int(options->num_bits())},
                                                   {"narrow_range", AttrValue::Bool(options->narrow_range())}}));
  return std::vector<TensorRef>{y};
}

Results Cumsum(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const std::vector<TensorRef> inputs, op->Inputs());
  const auto* options = op->op().builtin_options_as<tflite::CumsumOptions>();
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kCumsum, inputs,
                               {{"exclusive", AttrValue::Bool(options != nullptr && options->exclusive())},
                                {"reverse", AttrValue::Bool(options != nullptr && options->reverse())}}));
  return std::vector<TensorRef>{y};
}

Results Bucketize(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  const auto* options = op->op().builtin_options_as<tflite::BucketizeOptions>();
  std::vector<float> boundaries;
  if (options != nullptr && options->boundaries() != nullptr) {
    boundaries.assign(options->boundaries()->begin(), options->boundaries()->end());
  }
  PF_ASSIGN_OR_RETURN(const TensorRef y,
                      op->Emit(ops::kBucketize, {x}, {{"boundaries", AttrValue::FloatList(boundaries)}}));
  return std::vector<TensorRef>{y};
}

Results Bitcast(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kBitcast, {x}, {{"type", AttrValue::Type(op->OutputType(0))}}));
  return std::vector<TensorRef>{y};
}

// Adds real part, imaginary part or magnitude: complex64 to float, complex128 to double.
template <ops::OpId kOp>
Results ComplexPart(OperatorImport* op) {
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(kOp, {x}, {{"Tout", AttrValue::Type(op->OutputType(0))}}));
  return std::vector<TensorRef>{y};
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::ADD, 2, 1, Binary<ops::kAddV2, tflite::AddOptions>},
    {BuiltinOperator::SUB, 2, 1, Binary<ops::kSub, tflite::SubOptions>},
    {BuiltinOperator::MUL, 2, 1, Binary<ops::kMul, tflite::MulOptions>},
    {BuiltinOperator::DIV, 2, 1, Div},
    {BuiltinOperator::ADD_N, 1, 1, Direct<ops::kAddN>},
    {BuiltinOperator::POW, 2, 1, Direct<ops::kPow>},
    {BuiltinOperator::FLOOR_DIV, 2, 1, Direct<ops::kFloorDiv>},
    {BuiltinOperator::FLOOR_MOD, 2, 1, Direct<ops::kFloorMod>},
    {BuiltinOperator::MAXIMUM, 2, 1, Direct<ops::kMaximum>},
    {BuiltinOperator::MINIMUM, 2, 1, Direct<ops::kMinimum>},
    {BuiltinOperator::SQUARED_DIFFERENCE, 2, 1, Direct<ops::kSquaredDifference>},
    {BuiltinOperator::ATAN2, 2, 1, Direct<ops::kAtan2>},
    {BuiltinOperator::ABS, 1, 1, Direct<ops::kAbs>},
    {BuiltinOperator::NEG, 1, 1, Direct<ops::kNeg>},
    {BuiltinOperator::SIGN, 1, 1, Direct<ops::kSign>},
    {BuiltinOperator::EXP, 1, 1, Direct<ops::kExp>},
    {BuiltinOperator::LOG, 1, 1, Direct<ops::kLog>},
    {BuiltinOperator::SIN, 1, 1, Direct<ops::kSin>},
    {BuiltinOperator::COS, 1, 1, Direct<ops::kCos>},
    {BuiltinOperator::SQRT, 1, 1, Direct<ops::kSqrt>},
    {BuiltinOperator::RSQRT, 1, 1, Direct<ops::kRsqrt>},
    {BuiltinOperator::SQUARE, 1, 1, Direct<ops::kSquare>},
    {BuiltinOperator::FLOOR, 1, 1, Direct<ops::kFloor>},
    {BuiltinOperator::CEIL, 1, 1, Direct<ops::kCeil>},
    {BuiltinOperator::ROUND, 1, 1, Direct<ops::kRound>},
    {BuiltinOperator::LOGISTIC, 1, 1, Direct<ops::kSigmoid>},
    {BuiltinOperator::TANH, 1, 1, Direct<ops::kTanh>},
    {BuiltinOperator::RELU, 1, 1, Direct<ops::kRelu>},
    {BuiltinOperator::RELU6, 1, 1, Direct<ops::kRelu6>},
    {BuiltinOperator::RELU_N1_TO_1, 1, 1, ReluN1To1},
    {BuiltinOperator::RELU_0_TO_1, 1, 1, Relu0To1},
    {BuiltinOperator::ELU, 1, 1, Direct<ops::kElu>},
    {BuiltinOperator::LEAKY_RELU, 1, 1, LeakyRelu},
    {BuiltinOperator::PRELU, 2, 1, PRelu},
    {BuiltinOperator::HARD_SWISH, 1, 1, HardSwish},
    {BuiltinOperator::GELU, 1, 1, Gelu},
    {BuiltinOperator::LOG_SOFTMAX, 1, 1, Direct<ops::kLogSoftmax>},
    {BuiltinOperator::ZEROS_LIKE, 1, 1, Direct<ops::kZerosLike>},
    {BuiltinOperator::BITWISE_XOR, 2, 1, Direct<ops::kBitwiseXor>},
    {BuiltinOperator::RIGHT_SHIFT, 2, 1, Direct<ops::kRightShift>},
    {BuiltinOperator::LOGICAL_AND, 2, 1, Direct<ops::kLogicalAnd>},
    {BuiltinOperator::LOGICAL_OR, 2, 1, Direct<ops::kLogicalOr>},
    {BuiltinOperator::LOGICAL_NOT, 1, 1, Direct<ops::kLogicalNot>},
    {BuiltinOperator::EQUAL, 2, 1, Direct<ops::kEqual>},
    {BuiltinOperator::NOT_EQUAL, 2, 1, Direct<ops::kNotEqual>},
    {BuiltinOperator::LESS, 2, 1, Direct<ops::kLess>},
    {BuiltinOperator::LESS_EQUAL, 2, 1, Direct<ops::kLessEqual>},
    {BuiltinOperator::GREATER, 2, 1, Direct<ops::kGreater>},
    {BuiltinOperator::GREATER_EQUAL, 2, 1, Direct<ops::kGreaterEqual>},
    {BuiltinOperator::SELECT, 3, 1, Direct<ops::kSelect>},
    {BuiltinOperator::SELECT_V2, 3, 1, Direct<ops::kSelectV2>},
    {BuiltinOperator::MEAN, 2, 1, Reduce<ops::kMean>},
    {BuiltinOperator::SUM, 2, 1, Reduce<ops::kSum>},
    {BuiltinOperator::REDUCE_PROD, 2, 1, Reduce<ops::kProd>},
    {BuiltinOperator::REDUCE_MAX, 2, 1, Reduce<ops::kMax>},
    {BuiltinOperator::REDUCE_MIN, 2, 1, Reduce<ops::kMin>},
    {BuiltinOperator::REDUCE_ANY, 2, 1, Reduce<ops::kAny>},
    {BuiltinOperator::REDUCE_ALL, 2, 1, Reduce<ops::kAll>},
    {BuiltinOperator::ARG_MAX, 2, 1, ArgReduce<ops::kArgMax>},
    {BuiltinOperator::ARG_MIN, 2, 1, ArgReduce<ops::kArgMin>},
    {BuiltinOperator::CAST, 1, 1, Cast},
    {BuiltinOperator::DEQUANTIZE, 1, 1, Dequantize},
    {BuiltinOperator::FAKE_QUANT, 1, 1, FakeQuant},
    {BuiltinOperator::CUMSUM, 2, 1, Cumsum},
    {BuiltinOperator::BUCKETIZE, 1, 1, Bucketize},
    {BuiltinOperator::BITCAST, 1, 1, Bitcast},
    {BuiltinOperator::REAL, 1, 1, ComplexPart<ops::kReal>},
    {BuiltinOperator::IMAG, 1, 1, ComplexPart<ops::kImag>},
    {BuiltinOperator::COMPLEX_ABS, 1, 1, ComplexPart<ops::kComplexAbs>},
    {BuiltinOperator::SEGMENT_SUM, 2, 1, Direct<ops::kSegmentSum>},
    {BuiltinOperator::UNSORTED_SEGMENT_SUM, 3, 1, Direct<ops::kUnsortedSegmentSum>},
    {BuiltinOperator::UNSORTED_SEGMENT_PROD, 3, 1, Direct<ops::kUnsortedSegmentProd>},
    {BuiltinOperator::UNSORTED_SEGMENT_MAX, 3, 1, Direct<ops::kUnsortedSegmentMax>},
    {BuiltinOperator::UNSORTED_SEGMENT_MIN, 3, 1, Direct<ops::kUnsortedSegmentMin>},
};

}  // namespace

absl::Span<const OperatorRow> ArithmeticOperators() { return kRows; }

}  // namespace permafrost
