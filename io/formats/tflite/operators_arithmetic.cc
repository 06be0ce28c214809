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
    {BuiltinOperator::ADD, 2, 1, Sum<ops::kAddV2, tflite::AddOptions>, Codes::kComputed,
     Form({ops::kAdd, ops::kAddV2, ops::kBiasAdd}, kTakesActivation, ExportAdd, "float int32 int64:4 int16:5",
          "1.5 1.14 2.4 2.6 2.13 2.23", "uint8 int8:2 int16:3")},
    {BuiltinOperator::SUB, 2, 1, Sum<ops::kSub, tflite::SubOptions>, Codes::kComputed,
     Form({ops::kSub}, kTakesActivation, ExportSub, "float int32 int64:4", "1.6 1.14 2.3 2.4 2.4",
          "uint8 int8:2 int16:5")},
    {BuiltinOperator::MUL, 2, 1, Binary<ops::kMul, tflite::MulOptions>, Codes::kComputed,
     Form({ops::kMul}, kTakesActivation, ExportMul, "float int32 int64:5 complex64:6 uint32:7 int16:7",
          "1.5 1.14 1.15 2.3 2.6 2.11 2.13 2.23", "uint8 int8:2 int16:4")},
    {BuiltinOperator::DIV, 2, 1, Div, Codes::kComputed,
     Form({ops::kRealDiv, ops::kDiv, ops::kTruncateDiv}, kTakesActivation, ExportDiv, "float int32", "1.6 2.3",
          "uint8")},
    {BuiltinOperator::ADD_N, 1, 1, Direct<ops::kAddN>, Codes::kRefused,
     Form({ops::kAddN}, kPlain, ExportElementwise, "float int32", "1.14")},
    {BuiltinOperator::POW, 2, 1, Direct<ops::kPow>, Codes::kRefused,
     Form({ops::kPow}, kPlain, ExportElementwise, "float int32", "1.10")},
    {BuiltinOperator::FLOOR_DIV, 2, 1, Direct<ops::kFloorDiv>, Codes::kRefused,
     Form({ops::kFloorDiv}, kPlain, ExportElementwise, "int32 float:2 int8:3 int16:3", "1.14 1.14 2.13")},
    {BuiltinOperator::FLOOR_MOD, 2, 1, Direct<ops::kFloorMod>, Codes::kRefused,
     Form({ops::kFloorMod}, kPlain, ExportElementwise, "float int32 int64 int8:2 int16:2", "1.13 2.13")},
    {BuiltinOperator::MAXIMUM, 2, 1, Direct<ops::kMaximum>, Codes::kMoved,
     Form({ops::kMaximum}, kPlain, ExportBroadcast, "float int32 int64", "1.14 1.14 2.3 2.3", "uint8 int8:2 int16:4")},
    {BuiltinOperator::MINIMUM, 2, 1, Direct<ops::kMinimum>, Codes::kMoved,
     Form({ops::kMinimum}, kPlain, ExportBroadcast, "float int32 int64", "1.14 1.14 2.3 2.3", "uint8 int8:2 int16:4")},
    {BuiltinOperator::SQUARED_DIFFERENCE, 2, 1, Direct<ops::kSquaredDifference>, Codes::kComputed,
     Form({ops::kSquaredDifference}, kPlain, ExportElementwise, "float int32", "1.13.1 2.5", "int8:2")},
    {BuiltinOperator::ATAN2, 2, 1, Direct<ops::kAtan2>, Codes::kRefused,
     Form({ops::kAtan2}, kPlain, ExportElementwise, "float double", "2.10")},
    {BuiltinOperator::ABS, 1, 1, Direct<ops::kAbs>, Codes::kComputed,
     Form({ops::kAbs}, kPlain, ExportElementwise, "float int16:4 int32:5", "1.13 2.4 2.5 2.6 2.12",
          "int8:2 uint8:2 int16:3")},
    {BuiltinOperator::NEG, 1, 1, Direct<ops::kNeg>, Codes::kComputed,
     Form({ops::kNeg}, kPlain, ExportElementwise, "float int32 int64", "1.9", "int8")},
    {BuiltinOperator::SIGN, 1, 1, Direct<ops::kSign>, Codes::kRefused,
     Form({ops::kSign}, kPlain, ExportElementwise, "float double int32:2", "2.11 2.12")},
    {BuiltinOperator::EXP, 1, 1, Direct<ops::kExp>, Codes::kComputed,
     Form({ops::kExp}, kPlain, ExportElementwise, "float", "1.7 2.12", "int8:2 int16:2")},
    {BuiltinOperator::LOG, 1, 1, Direct<ops::kLog>, Codes::kComputed,
     Form({ops::kLog}, kPlain, ExportElementwise, "float", "1.14 2.15", "int8:2 int16:2")},
    {BuiltinOperator::SIN, 1, 1, Direct<ops::kSin>, Codes::kComputed,
     Form({ops::kSin}, kPlain, ExportElementwise, "float", "1.9 2.23", "int8:2")},
    {BuiltinOperator::COS, 1, 1, Direct<ops::kCos>, Codes::kComputed,
     Form({ops::kCos}, kPlain, ExportElementwise, "float", "1.14 2.23", "int8:2")},
    {BuiltinOperator::SQRT, 1, 1, Direct<ops::kSqrt>, Codes::kComputed,
     Form({ops::kSqrt}, kPlain, ExportElementwise, "float", "1.10 2.21", "int8:2 int16:2")},
    {BuiltinOperator::RSQRT, 1, 1, Direct<ops::kRsqrt>, Codes::kComputed,
     Form({ops::kRsqrt}, kPlain, ExportElementwise, "float", "1.10 2.5 2.15", "int8:2 int16:3")},
    {BuiltinOperator::SQUARE, 1, 1, Direct<ops::kSquare>, Codes::kRefused,
     Form({ops::kSquare}, kPlain, ExportElementwise, "float", "1.12")},
    {BuiltinOperator::FLOOR, 1, 1, Direct<ops::kFloor>, Codes::kRefused,
     Form({ops::kFloor}, kPlain, ExportElementwise, "float", "1.9")},
    {BuiltinOperator::CEIL, 1, 1, Direct<ops::kCeil>, Codes::kRefused,
     Form({ops::kCeil}, kPlain, ExportElementwise, "float", "1.14")},
    {BuiltinOperator::ROUND, 1, 1, Direct<ops::kRound>, Codes::kRefused,
     Form({ops::kRound, ops::kRint}, kPlain, ExportElementwise, "float", "1.14")},
    {BuiltinOperator::LOGISTIC, 1, 1, Direct<ops::kSigmoid>, Codes::kComputed,
     Form({ops::kSigmoid}, kPlain, ExportElementwise, "float", "1.14 1.14 2.3", "uint8 int8:2 int16:3")},
    {BuiltinOperator::TANH, 1, 1, Direct<ops::kTanh>, Codes::kComputed,
     Form({ops::kTanh}, kPlain, ExportElementwise, "float", "1.14 1.14 2.3", "uint8 int8:2 int16:3")},
    {BuiltinOperator::RELU, 1, 1, Direct<ops::kRelu>, Codes::kComputed,
     Form({ops::kRelu}, kPlain, ExportElementwise, "float", "1.5 2.1 2.5", "int8:2 uint8:2 int16:3")},
    {BuiltinOperator::RELU6, 1, 1, Direct<ops::kRelu6>, Codes::kComputed,
     Form({ops::kRelu6}, kPlain, ExportElementwise, "float", "1.5 1.14 2.5", "uint8 int8:2 int16:3")},
    {BuiltinOperator::RELU_N1_TO_1, 1, 1, ReluN1To1, Codes::kComputed,
     Form({ops::kMaximum, ops::kMinimum}, kComposed, ExportReluN1To1, "float", "1.5", "uint8 int8")},
    {BuiltinOperator::RELU_0_TO_1, 1, 1, Relu0To1, Codes::kComputed,
     Form({ops::kMaximum, ops::kMinimum}, kComposed, ExportRelu0To1, "float", "2.10", "uint8 int8")},
    {BuiltinOperator::ELU, 1, 1, Direct<ops::kElu>, Codes::kComputed,
     Form({ops::kElu}, kPlain, ExportElementwise, "float", "1.14", "int8")},
    {BuiltinOperator::LEAKY_RELU, 1, 1, LeakyRelu, Codes::kComputed,
     Form({ops::kLeakyRelu}, kPlain, ExportLeakyRelu, "float", "1.13.1 2.3", "uint8 int8 int16:2")},
    {BuiltinOperator::PRELU, 2, 1, PRelu, Codes::kComputed,
     Form({ops::kSub, ops::kAddV2, ops::kAdd}, kComposed, ExportPRelu, "float", "1.8", "uint8 int8")},
    {BuiltinOperator::HARD_SWISH, 1, 1, HardSwish, Codes::kComputed,
     Form({ops::kMul, ops::kRealDiv}, kComposed, ExportHardSwish, "float", "1.15", "uint8 int8")},
    {BuiltinOperator::GELU, 1, 1, Gelu, Codes::kComputed,
     Form({ops::kMul, ops::kRealDiv}, kComposed, ExportGelu, "float", "2.9 2.9 2.23", "uint8 int8")},
    {BuiltinOperator::LOG_SOFTMAX, 1, 1, Direct<ops::kLogSoftmax>, Codes::kComputed,
     Form({ops::kLogSoftmax}, kPlain, ExportElementwise, "float", "1.14 1.14", "uint8 int8:2")},
    {BuiltinOperator::ZEROS_LIKE, 1, 1, Direct<ops::kZerosLike>, Codes::kRefused,
     Form({ops::kZerosLike}, kPlain, ExportElementwise, "float int32 int64", "1.12")},
    {BuiltinOperator::BITWISE_XOR, 2, 1, Direct<ops::kBitwiseXor>, Codes::kRefused,
     Form({ops::kBitwiseXor}, kPlain, ExportElementwise, "int8 uint8 int16 uint16 int32 uint32", "2.13")},
    {BuiltinOperator::RIGHT_SHIFT, 2, 1, Direct<ops::kRightShift>, Codes::kRefused,
     Form({ops::kRightShift}, kPlain, ExportElementwise, "int8 uint8 int16 uint16 int32 uint32", "2.13")},
    {BuiltinOperator::LOGICAL_AND, 2, 1, Direct<ops::kLogicalAnd>, Codes::kRefused,
     Form({ops::kLogicalAnd}, kPlain, ExportElementwise, "bool", "1.11")},
    {BuiltinOperator::LOGICAL_OR, 2, 1, Direct<ops::kLogicalOr>, Codes::kRefused,
     Form({ops::kLogicalOr}, kPlain, ExportElementwise, "bool", "1.11")},
    {BuiltinOperator::LOGICAL_NOT, 1, 1, Direct<ops::kLogicalNot>, Codes::kRefused,
     Form({ops::kLogicalNot}, kPlain, ExportElementwise, "bool", "1.11")},
    {BuiltinOperator::EQUAL, 2, 1, Direct<ops::kEqual>, Codes::kComputed,
     Form({ops::kEqual}, kPlain, ExportElementwise, "float int32 int64 bool uint8 string:3 int16:5",
          "1.14 1.14 2.3 2.13 2.21", "uint8 int8:2")},
    {BuiltinOperator::NOT_EQUAL, 2, 1, Direct<ops::kNotEqual>, Codes::kComputed,
     Form({ops::kNotEqual}, kPlain, ExportElementwise, "float int32 int64 bool string:3 int16:4", "1.14 1.14 2.3 2.21",
          "uint8 int8:2")},
    {BuiltinOperator::LESS, 2, 1, Direct<ops::kLess>, Codes::kComputed,
     Form({ops::kLess}, kPlain, ExportElementwise, "float int32 int64 int16:3", "1.14 1.14 2.13", "uint8 int8:2")},
    {BuiltinOperator::LESS_EQUAL, 2, 1, Direct<ops::kLessEqual>, Codes::kComputed,
     Form({ops::kLessEqual}, kPlain, ExportElementwise, "float int32 int64", "1.14 1.14", "uint8 int8:2")},
    {BuiltinOperator::GREATER, 2, 1, Direct<ops::kGreater>, Codes::kComputed,
     Form({ops::kGreater}, kPlain, ExportElementwise, "float int32 int64", "1.14 1.14", "uint8 int8:2")},
    {BuiltinOperator::GREATER_EQUAL, 2, 1, Direct<ops::kGreaterEqual>, Codes::kComputed,
     Form({ops::kGreaterEqual}, kPlain, ExportElementwise, "float int32 int64 int16:3", "1.14 1.14 2.13",
          "uint8 int8:2")},
    {BuiltinOperator::SELECT, 3, 1, Direct<ops::kSelect>, Codes::kMoved,
     Form({ops::kSelect}, kPlain, ExportSelect, "@1 float bool int16 int32 int64 uint32:4", "1.14 1.14 2.12 2.12",
          "uint8 int8:2 int16:2")},
    {BuiltinOperator::SELECT_V2, 3, 1, Direct<ops::kSelectV2>, Codes::kMoved,
     Form({ops::kSelectV2, ops::kSelect}, kPlain, ExportSelect, "@1 float bool int16 int32 int64 uint32:2", "2.2 2.12",
          "uint8 int8 int16")},
    {BuiltinOperator::MEAN, 2, 1, Reduce<ops::kMean>, Codes::kComputed,
     Form({ops::kMean}, kPlain, ExportReduction, "float int32 int64", "1.6 1.14 2.4", "uint8 int8:2 int16:3")},
    {BuiltinOperator::SUM, 2, 1, Reduce<ops::kSum>, Codes::kComputed,
     Form({ops::kSum}, kPlain, ExportReduction, "float int32 int64", "1.10 1.15", "uint8 int8:2 int16:2")},
    {BuiltinOperator::REDUCE_PROD, 2, 1, Reduce<ops::kProd>, Codes::kComputed,
     Form({ops::kProd}, kPlain, ExportReduction, "float int32 int64", "1.11 2.6", "int8:2 int16:2")},
    {BuiltinOperator::REDUCE_MAX, 2, 1, Reduce<ops::kMax>, Codes::kMoved,
     Form({ops::kMax}, kPlain, ExportReduction, "float int32 int64", "1.11 1.14 2.5", "uint8 int8:2 int16:3")},
    {BuiltinOperator::REDUCE_MIN, 2, 1, Reduce<ops::kMin>, Codes::kMoved,
     Form({ops::kMin}, kPlain, ExportReduction, "float int32 int64", "1.11 1.14 2.5", "uint8 int8:2 int16:3")},
    {BuiltinOperator::REDUCE_ANY, 2, 1, Reduce<ops::kAny>, Codes::kRefused,
     Form({ops::kAny}, kPlain, ExportReduction, "bool", "1.11")},
    {BuiltinOperator::REDUCE_ALL, 2, 1, Reduce<ops::kAll>, Codes::kRefused,
     Form({ops::kAll}, kPlain, ExportReduction, "bool", "2.6")},
    {BuiltinOperator::ARG_MAX, 2, 1, ArgReduce<ops::kArgMax>, Codes::kMoved,
     Form({ops::kArgMax}, kPlain, ExportArgMax, "float int32 bool:3", "1.9 1.14 2.9", "uint8 int8:2")},
    {BuiltinOperator::ARG_MIN, 2, 1, ArgReduce<ops::kArgMin>, Codes::kMoved,
     Form({ops::kArgMin}, kPlain, ExportArgMin, "float int32 bool:3", "1.9 1.14 2.9", "uint8 int8:2")},
    {BuiltinOperator::CAST, 1, 1, Cast, Codes::kMoved,
     Form({ops::kCast}, kPlain, ExportCast,
          "float int32 int64 bool complex64 uint8 int16 uint32:2 int8:3 uint16:4 half:5 double:5",
          "1.5 2.7 2.8 2.9 2.12 2.15 2.17 2.21 2.23")},
    {BuiltinOperator::DEQUANTIZE, 1, 1, Dequantize, Codes::kMoved,
     Form({ops::kCast}, kPlain, ExportDequantize, "half:3", "1.13.1 1.14 1.15 2.2 2.7 2.18 2.21 2.22 2.23")},
    {BuiltinOperator::QUANTIZE, 1, 1, Quantize, Codes::kComputed,
     Form({}, kPlain, nullptr, "", "1.14 1.15 2.7 2.21 2.21 2.21")},
    {BuiltinOperator::FAKE_QUANT, 1, 1, FakeQuant, Codes::kRefused,
     Form({ops::kFakeQuantWithMinMaxArgs}, kPlain, ExportFakeQuant, "float", "1.5 1.10")},
    {BuiltinOperator::CUMSUM, 2, 1, Cumsum, Codes::kRefused,
     Form({ops::kCumsum}, kPlain, ExportCumsum, "float int32 int64", "2.4")},
    {BuiltinOperator::BUCKETIZE, 1, 1, Bucketize, Codes::kRefused,
     Form({ops::kBucketize}, kPlain, ExportBucketize, "float double int32 int64", "2.8")},
    {BuiltinOperator::BITCAST, 1, 1, Bitcast, Codes::kMoved,
     Form({ops::kBitcast}, kPlain, ExportElementwise, "", "2.13")},
    {BuiltinOperator::REAL, 1, 1, ComplexPart<ops::kReal>, Codes::kRefused,
     Form({ops::kReal}, kPlain, ExportElementwise, "complex64 complex128", "2.5")},
    {BuiltinOperator::IMAG, 1, 1, ComplexPart<ops::kImag>, Codes::kRefused,
     Form({ops::kImag}, kPlain, ExportElementwise, "complex64 complex128", "2.5")},
    {BuiltinOperator::COMPLEX_ABS, 1, 1, ComplexPart<ops::kComplexAbs>, Codes::kRefused,
     Form({ops::kComplexAbs}, kPlain, ExportElementwise, "complex64 complex128", "2.5")},
    {BuiltinOperator::SEGMENT_SUM, 2, 1, Direct<ops::kSegmentSum>, Codes::kRefused,
     Form({ops::kSegmentSum}, kPlain, ExportSegments, "float int32", "2.2")},
    {BuiltinOperator::UNSORTED_SEGMENT_SUM, 3, 1, Direct<ops::kUnsortedSegmentSum>, Codes::kRefused,
     Form({ops::kUnsortedSegmentSum}, kPlain, ExportSegments, "float int32", "2.10")},
    {BuiltinOperator::UNSORTED_SEGMENT_PROD, 3, 1, Direct<ops::kUnsortedSegmentProd>, Codes::kRefused,
     Form({ops::kUnsortedSegmentProd}, kPlain, ExportSegments, "float int32", "2.10")},
    {BuiltinOperator::UNSORTED_SEGMENT_MAX, 3, 1, Direct<ops::kUnsortedSegmentMax>, Codes::kRefused,
     Form({ops::kUnsortedSegmentMax}, kPlain, ExportSegments, "float int32", "2.10")},
    {BuiltinOperator::UNSORTED_SEGMENT_MIN, 3, 1, Direct<ops::kUnsortedSegmentMin>, Codes::kRefused,
     Form({ops::kUnsortedSegmentMin}, kPlain, ExportSegments, "float int32", "2.11")},
};

}  // namespace

absl::Span<const OperatorRow> ArithmeticOperators() { return kRows; }

}  // namespace permafrost
