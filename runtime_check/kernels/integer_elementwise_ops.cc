// Elementwise operators on codes: those of one or two operands, comparisons and the concatenation with rescaling.
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/broadcast.h"
#include "runtime_check/kernels/integer/integer_elementwise.h"
#include "runtime_check/kernels/integer_operator.h"
#include "runtime_check/kernels/prepare.h"

namespace permafrost {
namespace {

// Elements of a piece that is worth a thread of its own: about 5 microseconds.
constexpr int64_t kGrain = 8 << 10;

template <typename Value>
struct NamedFunction {
  const char* name;
  Value value;
};

constexpr NamedFunction<UnaryOp> kUnaryFunctions[] = {
    {"Requantize", UnaryOp::kRequantize},
    {"Relu", UnaryOp::kRelu},
    {"Relu6", UnaryOp::kRelu6},
    {"ReluN1To1", UnaryOp::kReluN1To1},
    {"Relu0To1", UnaryOp::kRelu0To1},
    {"LeakyRelu", UnaryOp::kLeakyRelu},
    {"HardSwish", UnaryOp::kHardSwish},
    {"Sigmoid", UnaryOp::kLogistic},
    {"Tanh", UnaryOp::kTanh},
    {"Elu", UnaryOp::kElu},
    {"Gelu", UnaryOp::kGelu},
    {"GeluApproximate", UnaryOp::kGeluApproximate},
    {"Exp", UnaryOp::kExp},
    {"Log", UnaryOp::kLog},
    {"Sqrt", UnaryOp::kSqrt},
    {"Rsqrt", UnaryOp::kRsqrt},
    {"Abs", UnaryOp::kAbs},
    {"Neg", UnaryOp::kNeg},
    {"Sin", UnaryOp::kSin},
    {"Cos", UnaryOp::kCos},
};
constexpr NamedFunction<BinaryOp> kBinaryFunctions[] = {
    {"Add", BinaryOp::kAdd}, {"Sub", BinaryOp::kSub},     {"Mul", BinaryOp::kMul},
    {"Div", BinaryOp::kDiv}, {"PRelu", BinaryOp::kPrelu}, {"SquaredDifference", BinaryOp::kSquaredDifference},
};
constexpr NamedFunction<CompareOp> kCompareFunctions[] = {
    {"Equal", CompareOp::kEqual},     {"NotEqual", CompareOp::kNotEqual},
    {"Less", CompareOp::kLess},       {"LessEqual", CompareOp::kLessEqual},
    {"Greater", CompareOp::kGreater}, {"GreaterEqual", CompareOp::kGreaterEqual},
};

template <typename Value, size_t count>
absl::StatusOr<Value> ReadFunction(const Node& node, const NamedFunction<Value> (&functions)[count]) {
  PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "function"));
  for (const NamedFunction<Value>& function : functions) {
    if (name == function.name) return function.value;
  }
  return absl::InvalidArgumentError(absl::StrCat("attr 'function' is '", name, "', which is not known"));
}

// The first error of the pieces of a computation.
class FirstError {
 public:
  void Add(int64_t piece_begin, absl::Status status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok() || piece_begin < begin_) {
      begin_ = piece_begin;
      status_ = std::move(status);
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  int64_t begin_ = 0;
  absl::Status status_;
};

struct UnaryState : public KernelState {
  IntegerUnary op;
};

absl::Status PrepareUnary(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 1, 1));
  auto state = std::make_unique<UnaryState>();
  PF_ASSIGN_OR_RETURN(const UnaryOp function, ReadFunction(context->node(), kUnaryFunctions));
  PF_ASSIGN_OR_RETURN(const Affine input, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine output, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(const float alpha, FloatAttr(context->node(), "alpha"));
  PF_ASSIGN_OR_RETURN(const Rounding rounding, ReadRounding(context->node()));
  PF_ASSIGN_OR_RETURN(state->op, IntegerUnary::Make(function, input, output, alpha, rounding));
  context->SetState(std::move(state));
  return SameShape(context);
}

absl::Status ComputeUnary(ComputeContext* context) {
  const auto& state = context->state<UnaryState>();
  const int64_t count = context->input_shape(0).num_elements();
  const char* x = context->input_bytes(0);
  char* y = context->output_bytes(0);
  const auto x_size = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const auto y_size = static_cast<int64_t>(SizeOf(context->output_type(0)));
  FirstError error;
  context->threads().ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    error.Add(begin, state.op.Compute(end - begin, x + begin * x_size, y + begin * y_size));
  });
  return error.status();
}

template <typename Operator>
struct BinaryState : public KernelState {
  Operator op;
  Broadcast broadcast;
};

template <typename Operator>
absl::Status FinishBinary(PrepareContext* context, Operator op) {
  const Shape &a = context->input_shape(0), &b = context->input_shape(1);
  PF_ASSIGN_OR_RETURN(const Shape output, BroadcastShapes(a, b));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  auto state = std::make_unique<BinaryState<Operator>>();
  state->op = std::move(op);
  state->broadcast = Broadcast({a, b}, output);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

// Uses the tolerance of LiteRT.
bool IsPowerOfTwo(float scale) {
  const double exponent = std::log2(static_cast<double>(scale));
  return std::abs(exponent - std::round(exponent)) < 1e-3;
}

absl::Status PrepareBinary(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const BinaryOp function, ReadFunction(node, kBinaryFunctions));
  PF_ASSIGN_OR_RETURN(const Affine a, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine b, InputAffine(*context, 1));
  PF_ASSIGN_OR_RETURN(const Affine output, OutputAffine(*context));
  PF_ASSIGN_OR_RETURN(const FusedActivation activation, ReadActivation(node));
  // The flag is set by default in old files; LiteRT ignores it for scales that are no powers of two.
  PF_ASSIGN_OR_RETURN(bool powers_of_two, BoolAttr(node, "powers_of_two"));
  for (const Affine& affine : {a, b, output}) powers_of_two = powers_of_two && IsPowerOfTwo(affine.scale);
  PF_ASSIGN_OR_RETURN(const Rounding rounding, ReadRounding(node));
  PF_ASSIGN_OR_RETURN(IntegerBinary op,
                      IntegerBinary::Make(function, a, b, output, activation, powers_of_two, rounding));
  return FinishBinary(context, std::move(op));
}

absl::Status ComputeBinary(ComputeContext* context) {
  const auto& state = context->state<BinaryState<IntegerBinary>>();
  const Broadcast& broadcast = state.broadcast;
  const char *a = context->input_bytes(0), *b = context->input_bytes(1);
  char* y = context->output_bytes(0);
  const auto size = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t a_step = broadcast.IsScalarInRow(0) ? 0 : 1, b_step = broadcast.IsScalarInRow(1) ? 0 : 1;
  FirstError error;
  context->threads().ParallelFor(broadcast.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t offset, int64_t n) {
      error.Add(offset,
                state.op.Compute(n, a + offsets[0] * size, a_step, b + offsets[1] * size, b_step, y + offset * size));
    });
  });
  return error.status();
}

absl::Status PrepareCompare(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 2, 2));
  if (context->output_type(0) != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("the output is of type ", DTypeName(context->output_type(0)), ", expected bool"));
  }
  PF_ASSIGN_OR_RETURN(const CompareOp function, ReadFunction(context->node(), kCompareFunctions));
  PF_ASSIGN_OR_RETURN(const Affine a, InputAffine(*context, 0));
  PF_ASSIGN_OR_RETURN(const Affine b, InputAffine(*context, 1));
  PF_ASSIGN_OR_RETURN(IntegerComparison op, IntegerComparison::Make(function, a, b));
  return FinishBinary(context, std::move(op));
}

absl::Status ComputeCompare(ComputeContext* context) {
  const auto& state = context->state<BinaryState<IntegerComparison>>();
  const Broadcast& broadcast = state.broadcast;
  const char *a = context->input_bytes(0), *b = context->input_bytes(1);
  bool* y = context->output<bool>(0);
  const auto size = static_cast<int64_t>(SizeOf(context->input_type(0)));
  const int64_t a_step = broadcast.IsScalarInRow(0) ? 0 : 1, b_step = broadcast.IsScalarInRow(1) ? 0 : 1;
  context->threads().ParallelFor(broadcast.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    broadcast.ForEachRow(begin, end, [&](const int64_t* offsets, int64_t offset, int64_t n) {
      state.op.Compute(n, a + offsets[0] * size, a_step, b + offsets[1] * size, b_step, y + offset);
    });
  });
  return absl::OkStatus();
}

struct ConcatState : public KernelState {
  std::vector<ConcatenationInput> inputs;
  std::vector<int64_t> row_sizes;  // By input: elements of one outer index.
  int64_t rows = 0;                // The product of the dimensions before the axis.
};

absl::Status PrepareConcat(PrepareContext* context) {
  const int count = context->num_inputs() - 1;
  if (count < 1) return absl::InvalidArgumentError("has no inputs");
  PF_ASSIGN_OR_RETURN(const int64_t axis_value, IntegerInput(context, count));
  PF_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axis_value, context->input_shape(0).rank()));
  PF_ASSIGN_OR_RETURN(Shape output, ShapeOfJoined(context, 0, count, axis));
  PF_ASSIGN_OR_RETURN(const Affine codes, OutputAffine(*context));
  auto state = std::make_unique<ConcatState>();
  for (int i = 0; i < count; ++i) {
    if (context->input_type(i) != DType::kUint8 || context->output_type(0) != DType::kUint8) {
      return absl::UnimplementedError("only codes of type uint8 are rescaled");
    }
    PF_ASSIGN_OR_RETURN(const Affine input, InputAffine(*context, i));
    PF_ASSIGN_OR_RETURN(state->inputs.emplace_back(), ConcatenationInput::Make(input, codes));
    const Shape& shape = context->input_shape(i);
    state->row_sizes.push_back(ProductOfDims(shape, axis, shape.rank()));
  }
  state->rows = ProductOfDims(output, 0, axis);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, std::move(output)));
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeConcat(ComputeContext* context) {
  const auto& state = context->state<ConcatState>();
  if (context->output_shape(0).num_elements() == 0) return absl::OkStatus();
  auto* output = context->output<uint8_t>(0);
  for (int64_t row = 0; row < state.rows; ++row) {
    for (size_t i = 0; i < state.inputs.size(); ++i) {
      const int64_t size = state.row_sizes[i];
      if (size == 0) continue;
      state.inputs[i].Compute(size, context->input<uint8_t>(static_cast<int>(i)) + row * size, output);
      output += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(_IntegerUnary) {
  return Kernel("a function of the numbers that codes represent, as codes of the output's scale")
      .Prepare(PrepareUnary)
      .Compute(ComputeUnary);
}

DEFINE_KERNEL(_IntegerBinary) {
  return Kernel(
             "a function of the numbers that codes of both inputs represent, broadcast, as codes of the output's scale")
      .Prepare(PrepareBinary)
      .Compute(ComputeBinary);
}

DEFINE_KERNEL(_IntegerCompare) {
  return Kernel("comparison of the numbers that codes of both inputs represent, broadcast")
      .Prepare(PrepareCompare)
      .Compute(ComputeCompare);
}

DEFINE_KERNEL(_IntegerConcat) {
  return Kernel("the inputs one after the other along an axis, as codes of the output's scale")
      .Prepare(PrepareConcat)
      .Compute(ComputeConcat);
}

}  // namespace permafrost
