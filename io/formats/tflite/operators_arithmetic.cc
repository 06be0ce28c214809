// Elementwise operators, comparisons, reductions and selections.
#include "absl/strings/str_cat.h"
#include "graph/analysis/uniform_quantization.h"
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

// Adds ADD or SUB. `pot_scale_int16` declares scales of int16 that are powers of two.
template <ops::OpId kOp, typename Options>
Results Sum(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<Options>();
  if (options != nullptr && options->pot_scale_int16() && op->OutputTensor(0).type() == tflite::TensorType::INT16) {
    op->Mark(kPowersOfTwoAttr, AttrValue::Bool(true));
  }
  return Binary<kOp, Options>(op);
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

// Converts codes or half numbers to float. The nodes are not shared with other readers of the codes, so that the result
// keeps its name.
Results Dequantize(OperatorImport* op) {
  if (op->InputType(0) == DType::kHalf) return Cast(op);
  if (!op->IsQuantizedInput(0)) return absl::InvalidArgumentError("its operand has no scale");
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Dequantized(0));
  return std::vector<TensorRef>{y};
}

// Converts float to codes, or codes to codes of another scale: OperatorImport::Quantize adds the node.
Results Quantize(OperatorImport* op) {
  if (!op->IsQuantizedOutput(0)) return absl::InvalidArgumentError("its result has no scale");
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  return std::vector<TensorRef>{x};
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
    {BuiltinOperator::ADD, 2, 1, Sum<ops::kAddV2, tflite::AddOptions>, Codes::kComputed},
    {BuiltinOperator::SUB, 2, 1, Sum<ops::kSub, tflite::SubOptions>, Codes::kComputed},
    {BuiltinOperator::MUL, 2, 1, Binary<ops::kMul, tflite::MulOptions>, Codes::kComputed},
    {BuiltinOperator::DIV, 2, 1, Div, Codes::kComputed},
    {BuiltinOperator::ADD_N, 1, 1, Direct<ops::kAddN>},
    {BuiltinOperator::POW, 2, 1, Direct<ops::kPow>},
    {BuiltinOperator::FLOOR_DIV, 2, 1, Direct<ops::kFloorDiv>},
    {BuiltinOperator::FLOOR_MOD, 2, 1, Direct<ops::kFloorMod>},
    {BuiltinOperator::MAXIMUM, 2, 1, Direct<ops::kMaximum>, Codes::kMoved},
    {BuiltinOperator::MINIMUM, 2, 1, Direct<ops::kMinimum>, Codes::kMoved},
    {BuiltinOperator::SQUARED_DIFFERENCE, 2, 1, Direct<ops::kSquaredDifference>, Codes::kComputed},
    {BuiltinOperator::ATAN2, 2, 1, Direct<ops::kAtan2>},
    {BuiltinOperator::ABS, 1, 1, Direct<ops::kAbs>, Codes::kComputed},
    {BuiltinOperator::NEG, 1, 1, Direct<ops::kNeg>, Codes::kComputed},
    {BuiltinOperator::SIGN, 1, 1, Direct<ops::kSign>},
    {BuiltinOperator::EXP, 1, 1, Direct<ops::kExp>, Codes::kComputed},
    {BuiltinOperator::LOG, 1, 1, Direct<ops::kLog>, Codes::kComputed},
    {BuiltinOperator::SIN, 1, 1, Direct<ops::kSin>, Codes::kComputed},
    {BuiltinOperator::COS, 1, 1, Direct<ops::kCos>, Codes::kComputed},
    {BuiltinOperator::SQRT, 1, 1, Direct<ops::kSqrt>, Codes::kComputed},
    {BuiltinOperator::RSQRT, 1, 1, Direct<ops::kRsqrt>, Codes::kComputed},
    {BuiltinOperator::SQUARE, 1, 1, Direct<ops::kSquare>},
    {BuiltinOperator::FLOOR, 1, 1, Direct<ops::kFloor>},
    {BuiltinOperator::CEIL, 1, 1, Direct<ops::kCeil>},
    {BuiltinOperator::ROUND, 1, 1, Direct<ops::kRound>},
    {BuiltinOperator::LOGISTIC, 1, 1, Direct<ops::kSigmoid>, Codes::kComputed},
    {BuiltinOperator::TANH, 1, 1, Direct<ops::kTanh>, Codes::kComputed},
    {BuiltinOperator::RELU, 1, 1, Direct<ops::kRelu>, Codes::kComputed},
    {BuiltinOperator::RELU6, 1, 1, Direct<ops::kRelu6>, Codes::kComputed},
    {BuiltinOperator::RELU_N1_TO_1, 1, 1, ReluN1To1, Codes::kComputed},
    {BuiltinOperator::RELU_0_TO_1, 1, 1, Relu0To1, Codes::kComputed},
    {BuiltinOperator::ELU, 1, 1, Direct<ops::kElu>, Codes::kComputed},
    {BuiltinOperator::LEAKY_RELU, 1, 1, LeakyRelu, Codes::kComputed},
    {BuiltinOperator::PRELU, 2, 1, PRelu, Codes::kComputed},
    {BuiltinOperator::HARD_SWISH, 1, 1, HardSwish, Codes::kComputed},
    {BuiltinOperator::GELU, 1, 1, Gelu, Codes::kComputed},
    {BuiltinOperator::LOG_SOFTMAX, 1, 1, Direct<ops::kLogSoftmax>, Codes::kComputed},
    {BuiltinOperator::ZEROS_LIKE, 1, 1, Direct<ops::kZerosLike>},
    {BuiltinOperator::BITWISE_XOR, 2, 1, Direct<ops::kBitwiseXor>},
    {BuiltinOperator::RIGHT_SHIFT, 2, 1, Direct<ops::kRightShift>},
    {BuiltinOperator::LOGICAL_AND, 2, 1, Direct<ops::kLogicalAnd>},
    {BuiltinOperator::LOGICAL_OR, 2, 1, Direct<ops::kLogicalOr>},
    {BuiltinOperator::LOGICAL_NOT, 1, 1, Direct<ops::kLogicalNot>},
    {BuiltinOperator::EQUAL, 2, 1, Direct<ops::kEqual>, Codes::kComputed},
    {BuiltinOperator::NOT_EQUAL, 2, 1, Direct<ops::kNotEqual>, Codes::kComputed},
    {BuiltinOperator::LESS, 2, 1, Direct<ops::kLess>, Codes::kComputed},
    {BuiltinOperator::LESS_EQUAL, 2, 1, Direct<ops::kLessEqual>, Codes::kComputed},
    {BuiltinOperator::GREATER, 2, 1, Direct<ops::kGreater>, Codes::kComputed},
    {BuiltinOperator::GREATER_EQUAL, 2, 1, Direct<ops::kGreaterEqual>, Codes::kComputed},
    {BuiltinOperator::SELECT, 3, 1, Direct<ops::kSelect>, Codes::kMoved},
    {BuiltinOperator::SELECT_V2, 3, 1, Direct<ops::kSelectV2>, Codes::kMoved},
    {BuiltinOperator::MEAN, 2, 1, Reduce<ops::kMean>, Codes::kComputed},
    {BuiltinOperator::SUM, 2, 1, Reduce<ops::kSum>, Codes::kComputed},
    {BuiltinOperator::REDUCE_PROD, 2, 1, Reduce<ops::kProd>, Codes::kComputed},
    {BuiltinOperator::REDUCE_MAX, 2, 1, Reduce<ops::kMax>, Codes::kMoved},
    {BuiltinOperator::REDUCE_MIN, 2, 1, Reduce<ops::kMin>, Codes::kMoved},
    {BuiltinOperator::REDUCE_ANY, 2, 1, Reduce<ops::kAny>},
    {BuiltinOperator::REDUCE_ALL, 2, 1, Reduce<ops::kAll>},
    {BuiltinOperator::ARG_MAX, 2, 1, ArgReduce<ops::kArgMax>, Codes::kMoved},
    {BuiltinOperator::ARG_MIN, 2, 1, ArgReduce<ops::kArgMin>, Codes::kMoved},
    {BuiltinOperator::CAST, 1, 1, Cast, Codes::kMoved},
    {BuiltinOperator::DEQUANTIZE, 1, 1, Dequantize, Codes::kMoved},
    {BuiltinOperator::QUANTIZE, 1, 1, Quantize, Codes::kComputed},
    {BuiltinOperator::FAKE_QUANT, 1, 1, FakeQuant},
    {BuiltinOperator::CUMSUM, 2, 1, Cumsum},
    {BuiltinOperator::BUCKETIZE, 1, 1, Bucketize},
    {BuiltinOperator::BITCAST, 1, 1, Bitcast, Codes::kMoved},
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
