// Recurrent operators of TensorFlow Lite: LSTM, RNN and SVDF, in float, with int8 weights, and on codes. States are
// inputs and outputs; variables keep them between runs.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/kernel.h"
#include "runtime_check/kernels/integer/integer_recurrent.h"
#include "runtime_check/kernels/integer_operator.h"
#include "runtime_check/kernels/prepare.h"
#include "runtime_check/kernels/scratch.h"

namespace permafrost {
namespace {

// The operands of an LSTM by their number in the file. The attribute `operands` lists the numbers of the inputs.
constexpr int kLstmOperands = 24;
constexpr int kLstmInputWeights = 1, kLstmRecurrentWeights = 5, kLstmPeepholes = 9, kLstmBiases = 12,
              kLstmProjection = 16, kLstmProjectionBias = 17, kLstmOutputState = 18, kLstmCellState = 19,
              kLstmLayerNorms = 20;

// Positions of operands among the inputs, -1 for an absent one.
using LstmPositions = std::array<int, kLstmOperands>;

absl::StatusOr<LstmPositions> ReadPositions(const PrepareContext& context) {
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> operands, IntListAttr(context.node(), "operands"));
  if (static_cast<int>(operands.size()) != context.num_inputs()) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'operands' has ", operands.size(), " numbers, expected ",
                                                   context.num_inputs(), ", one for each input"));
  }
  LstmPositions positions;
  positions.fill(-1);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] < 0 || operands[i] >= kLstmOperands || positions[static_cast<size_t>(operands[i])] >= 0) {
      return absl::InvalidArgumentError(absl::StrCat("attr 'operands' has the number ", operands[i],
                                                     ", expected different numbers from 0 to ", kLstmOperands - 1));
    }
    positions[static_cast<size_t>(operands[i])] = static_cast<int>(i);
  }
  for (const int operand : {0, 2, kLstmOutputState, kLstmCellState}) {
    if (positions[static_cast<size_t>(operand)] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", operand, " is absent"));
    }
  }
  return positions;
}

// Returns InvalidArgument unless an input has the type and the shape.
absl::Status RequireTensor(const PrepareContext& context, int input, DType dtype, const Shape& shape) {
  if (context.input_type(input) == dtype && context.input_shape(input) == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " is ", DTypeName(context.input_type(input)), " ",
                                                 context.input_shape(input).ToString(), ", expected ", DTypeName(dtype),
                                                 " ", shape.ToString()));
}

absl::StatusOr<RecurrentActivation> ReadRecurrentActivation(const Node& node) {
  PF_ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "activation"));
  constexpr const char* kNames[] = {"NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT", "SIGMOID"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<RecurrentActivation>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("attr 'activation' is '", name, "', expected an activation"));
}

// Returns the scale of an input, 0 for an absent one.
absl::StatusOr<float> ScaleOfInput(const PrepareContext& context, int input) {
  if (input < 0) return 0.0f;
  PF_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatListAttr(context.node(), "input_scales"));
  if (static_cast<size_t>(input) < scales.size()) return scales[static_cast<size_t>(input)];
  return absl::InvalidArgumentError(
      absl::StrCat("found ", scales.size(), " scales of inputs, expected at least ", input + 1));
}

absl::StatusOr<WeightType> WeightTypeOf(const PrepareContext& context, int input) {
  const DType dtype = context.input_type(input);
  if (dtype == DType::kFloat) return WeightType::kFloat;
  if (dtype == DType::kInt8) return WeightType::kInt8;
  return absl::UnimplementedError(
      absl::StrCat("no kernel for weights of type ", DTypeName(dtype), ", expected float or int8"));
}

// Returns the value of a constant input, null for an absent one.
absl::StatusOr<const void*> ConstantBytes(PrepareContext* context, int input) {
  if (input < 0) return nullptr;
  const Tensor* value = context->input_value(input);
  if (value == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("input ", input, " is no constant, expected constant weights of codes"));
  }
  return value->bytes().data();
}

// Returns float weights that are known before the run, null if they are not.
const float* FloatWeights(const PrepareContext& context, int input) {
  const Tensor* value = input < 0 ? nullptr : context.input_value(input);
  return value == nullptr ? nullptr : value->data<float>();
}

// --- LSTM ------------------------------------------------------------------------------------------------------------

struct LstmState : public KernelState {
  LstmPositions positions;
  LstmSizes sizes;
  bool is_integer = false;
  FloatLstm real;
  IntegerLstm integer;
};

constexpr LstmGate kPeepholeGates[] = {kInputGate, kForgetGate, kOutputGate};

// Calls read(position) for each operand with data, and keeps its result; null for absent operands.
template <typename Read>
absl::StatusOr<LstmOperands> OperandsOf(const LstmPositions& positions, Read read) {
  LstmOperands operands;
  const auto fill = [&](int operand, const void** to) -> absl::Status {
    const int position = positions[static_cast<size_t>(operand)];
    if (position < 0) return absl::OkStatus();
    PF_ASSIGN_OR_RETURN(*to, read(position));
    return absl::OkStatus();
  };
  for (int gate = 0; gate < 4; ++gate) {
    PF_RETURN_IF_ERROR(fill(kLstmInputWeights + gate, &operands.input_weights[gate]));
    PF_RETURN_IF_ERROR(fill(kLstmRecurrentWeights + gate, &operands.recurrent_weights[gate]));
    PF_RETURN_IF_ERROR(fill(kLstmBiases + gate, &operands.biases[gate]));
    PF_RETURN_IF_ERROR(fill(kLstmLayerNorms + gate, &operands.layer_norms[gate]));
  }
  for (int i = 0; i < 3; ++i) PF_RETURN_IF_ERROR(fill(kLstmPeepholes + i, &operands.peepholes[kPeepholeGates[i]]));
  PF_RETURN_IF_ERROR(fill(kLstmProjection, &operands.projection));
  PF_RETURN_IF_ERROR(fill(kLstmProjectionBias, &operands.projection_bias));
  return operands;
}

absl::Status CheckLstmTensors(const PrepareContext& context, const LstmPositions& positions, const LstmSizes& sizes,
                              bool is_integer, WeightType weights, bool is_diagonal) {
  const DType weight = weights == WeightType::kInt8 ? DType::kInt8 : DType::kFloat;
  const DType bias = is_integer ? DType::kInt32 : DType::kFloat;
  const Shape cells({sizes.cell});
  const auto check = [&](int operand, DType dtype, const Shape& shape) {
    const int position = positions[static_cast<size_t>(operand)];
    return position < 0 ? absl::OkStatus() : RequireTensor(context, position, dtype, shape);
  };
  for (int gate = 0; gate < 4; ++gate) {
    PF_RETURN_IF_ERROR(check(kLstmInputWeights + gate, weight, Shape({sizes.cell, sizes.input})));
    PF_RETURN_IF_ERROR(
        check(kLstmRecurrentWeights + gate, weight, is_diagonal ? cells : Shape({sizes.cell, sizes.output})));
    PF_RETURN_IF_ERROR(check(kLstmBiases + gate, bias, cells));
    PF_RETURN_IF_ERROR(check(kLstmLayerNorms + gate, is_integer ? DType::kInt16 : DType::kFloat, cells));
  }
  for (int i = 0; i < 3; ++i) {
    PF_RETURN_IF_ERROR(check(kLstmPeepholes + i, is_integer ? DType::kInt16 : weight, cells));
  }
  PF_RETURN_IF_ERROR(check(kLstmProjection, weight, Shape({sizes.output, sizes.cell})));
  PF_RETURN_IF_ERROR(check(kLstmProjectionBias, bias, Shape({sizes.output})));
  PF_RETURN_IF_ERROR(
      check(kLstmOutputState, is_integer ? DType::kInt8 : DType::kFloat, Shape({sizes.batch, sizes.output})));
  return check(kLstmCellState, is_integer ? DType::kInt16 : DType::kFloat, Shape({sizes.batch, sizes.cell}));
}

absl::StatusOr<IntegerLstm> MakeIntegerLstm(PrepareContext* context, const LstmState& state, const LstmScales& scales,
                                            const LstmOptions& options) {
  const LstmPositions& positions = state.positions;
  PF_ASSIGN_OR_RETURN(const LstmOperands operands,
                      OperandsOf(positions, [&](int input) { return ConstantBytes(context, input); }));
  PF_ASSIGN_OR_RETURN(const Affine input, InputAffine(*context, positions[0]));
  PF_ASSIGN_OR_RETURN(const Affine output_state, InputAffine(*context, positions[kLstmOutputState]));
  PF_ASSIGN_OR_RETURN(const Affine cell_state, InputAffine(*context, positions[kLstmCellState]));
  PF_ASSIGN_OR_RETURN(const std::vector<float> intermediate_scales,
                      FloatListAttr(context->node(), "intermediate_scales"));
  PF_ASSIGN_OR_RETURN(const int64_t hidden_zero, IntAttr(context->node(), "hidden_zero_point"));
  std::array<Affine, 5> intermediates;
  if (intermediate_scales.size() != intermediates.size()) {
    return absl::InvalidArgumentError(absl::StrCat("found ", intermediate_scales.size(),
                                                   " scales of intermediate tensors, expected ", intermediates.size()));
  }
  for (size_t i = 0; i < intermediates.size(); ++i) intermediates[i] = {CodeType::kInt16, intermediate_scales[i], 0};
  intermediates[4].type = CodeType::kInt8;
  if (hidden_zero < -128 || hidden_zero > 127) {
    return absl::InvalidArgumentError(absl::StrCat("attr 'hidden_zero_point' is ", hidden_zero, ", expected a code"));
  }
  intermediates[4].zero_point = static_cast<int32_t>(hidden_zero);
  return IntegerLstm::Make(state.sizes, operands, scales, options, input, output_state, cell_state, intermediates);
}

// Packs the weights of an LSTM and releases them, if all of them are known before the run.
absl::Status PackLstm(PrepareContext* context, const LstmPositions& positions, FloatLstm* lstm) {
  std::vector<int> inputs;
  const auto collect = [&](int operand) {
    const int input = positions[static_cast<size_t>(operand)];
    if (input >= 0) inputs.push_back(input);
  };
  for (int gate = 0; gate < 4; ++gate) {
    collect(kLstmInputWeights + gate);
    collect(kLstmRecurrentWeights + gate);
  }
  collect(kLstmProjection);
  for (const int input : inputs) {
    if (FloatWeights(*context, input) == nullptr) return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(const LstmOperands operands, OperandsOf(positions, [&](int input) -> absl::StatusOr<const void*> {
                        return static_cast<const void*>(FloatWeights(*context, input));
                      }));
  PF_RETURN_IF_ERROR(lstm->Pack(operands));
  for (const int input : inputs) context->ReleaseInput(input);
  return absl::OkStatus();
}

absl::Status PrepareLstm(PrepareContext* context) {
  auto state = std::make_unique<LstmState>();
  PF_ASSIGN_OR_RETURN(state->positions, ReadPositions(*context));
  const LstmPositions& positions = state->positions;
  const Node& node = context->node();
  const auto position = [&](int operand) { return positions[static_cast<size_t>(operand)]; };
  PF_ASSIGN_OR_RETURN(const bool time_major, BoolAttr(node, "time_major"));
  const Shape& input = context->input_shape(position(0));
  const Shape& forget = context->input_shape(position(2));
  const Shape& output_state = context->input_shape(position(kLstmOutputState));
  if (input.rank() < 2 || input.rank() > 3 || forget.rank() != 2 || output_state.rank() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ", input.ToString(), ", weights ",
                                                   forget.ToString(), ", the output state ", output_state.ToString(),
                                                   ", expected 2 or 3, 2 and 2 dimensions"));
  }
  // An input of two dimensions is one step.
  LstmSizes& sizes = state->sizes;
  const bool is_step = input.rank() == 2;
  sizes.time_major = time_major;
  sizes.batch = is_step ? input.dim(0) : input.dim(time_major ? 1 : 0);
  sizes.time = is_step ? 1 : input.dim(time_major ? 0 : 1);
  sizes.input = input.dim(input.rank() - 1);
  sizes.cell = forget.dim(0);
  sizes.output = output_state.dim(1);
  state->is_integer = context->input_type(position(0)) == DType::kInt8;
  PF_ASSIGN_OR_RETURN(const WeightType weights, WeightTypeOf(*context, position(2)));
  if (!state->is_integer && context->input_type(position(0)) != DType::kFloat) {
    return absl::UnimplementedError(
        absl::StrCat("no kernel for input ", DTypeName(context->input_type(position(0))), ", expected float or int8"));
  }
  if (state->is_integer && weights != WeightType::kInt8) {
    return absl::UnimplementedError("no kernel for an input of int8 and weights of float");
  }
  LstmOptions options;
  PF_ASSIGN_OR_RETURN(options.activation, ReadRecurrentActivation(node));
  PF_ASSIGN_OR_RETURN(options.cell_clip, FloatAttr(node, "cell_clip"));
  PF_ASSIGN_OR_RETURN(options.projection_clip, FloatAttr(node, "proj_clip"));
  PF_ASSIGN_OR_RETURN(options.asymmetric, BoolAttr(node, "asymmetric_quantize_inputs"));
  PF_ASSIGN_OR_RETURN(options.diagonal_recurrent, BoolAttr(node, "diagonal_recurrent_tensors"));
  if (options.diagonal_recurrent && (weights != WeightType::kFloat || sizes.output != sizes.cell)) {
    return absl::UnimplementedError("diagonal recurrent weights need floats and as many outputs as cells");
  }
  PF_RETURN_IF_ERROR(
      CheckLstmTensors(*context, positions, sizes, state->is_integer, weights, options.diagonal_recurrent));
  LstmScales scales;
  if (weights == WeightType::kInt8) {
    for (int gate = 0; gate < 4; ++gate) {
      PF_ASSIGN_OR_RETURN(scales.input_weights[gate], ScaleOfInput(*context, position(kLstmInputWeights + gate)));
      PF_ASSIGN_OR_RETURN(scales.recurrent_weights[gate],
                          ScaleOfInput(*context, position(kLstmRecurrentWeights + gate)));
      PF_ASSIGN_OR_RETURN(scales.layer_norms[gate], ScaleOfInput(*context, position(kLstmLayerNorms + gate)));
    }
    for (int i = 0; i < 3; ++i) {
      PF_ASSIGN_OR_RETURN(scales.peepholes[kPeepholeGates[i]], ScaleOfInput(*context, position(kLstmPeepholes + i)));
    }
    PF_ASSIGN_OR_RETURN(scales.projection, ScaleOfInput(*context, position(kLstmProjection)));
  }
  int64_t scratch_size = 0;
  if (state->is_integer) {
    PF_ASSIGN_OR_RETURN(state->integer, MakeIntegerLstm(context, *state, scales, options));
    scratch_size = state->integer.scratch_size();
  } else {
    // Only the presence of operands is read here.
    constexpr float kPresent = 0;
    PF_ASSIGN_OR_RETURN(const LstmOperands operands, OperandsOf(positions, [&](int) -> absl::StatusOr<const void*> {
                          return static_cast<const void*>(&kPresent);
                        }));
    PF_ASSIGN_OR_RETURN(state->real, FloatLstm::Make(sizes, weights, operands, scales, options));
    if (weights == WeightType::kFloat && !options.diagonal_recurrent) {
      PF_RETURN_IF_ERROR(PackLstm(context, positions, &state->real));
    }
    scratch_size = state->real.scratch_size();
  }
  Shape output = input;
  output.set_dim(input.rank() - 1, sizes.output);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, output_state));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 2, context->input_shape(position(kLstmCellState))));
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(1, scratch_size).status());
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

template <typename T>
T* CopiedState(ComputeContext* context, int input, int output) {
  T* state = context->output<T>(output);
  const T* before = context->input<T>(input);
  std::copy_n(before, context->input_shape(input).num_elements(), state);
  return state;
}

absl::Status ComputeLstm(ComputeContext* context) {
  const auto& state = context->state<LstmState>();
  PF_ASSIGN_OR_RETURN(const LstmOperands operands,
                      OperandsOf(state.positions, [&](int input) -> absl::StatusOr<const void*> {
                        return static_cast<const void*>(context->input_bytes(input));
                      }));
  const int input = state.positions[0], output_state = state.positions[kLstmOutputState],
            cell_state = state.positions[kLstmCellState];
  if (state.is_integer) {
    state.integer.Compute(operands, context->input<int8_t>(input), CopiedState<int8_t>(context, output_state, 1),
                          CopiedState<int16_t>(context, cell_state, 2), context->scratch(), context->output<int8_t>(0));
  } else {
    state.real.Compute(operands, context->input<float>(input), CopiedState<float>(context, output_state, 1),
                       CopiedState<float>(context, cell_state, 2), context->scratch(), context->output<float>(0));
  }
  return absl::OkStatus();
}

// --- RNN -------------------------------------------------------------------------------------------------------------

struct RnnState : public KernelState {
  FloatRnn rnn;
};

// Inputs: input, weights, recurrent weights, bias, state.
absl::Status PrepareRnn(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 5, 5));
  const Node& node = context->node();
  PF_ASSIGN_OR_RETURN(const bool time_major, BoolAttr(node, "time_major"));
  const Shape &input = context->input_shape(0), &weights = context->input_shape(1);
  if (input.rank() < 2 || input.rank() > 3 || weights.rank() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ", input.ToString(), ", weights ",
                                                   weights.ToString(), ", expected 2 or 3 and 2 dimensions"));
  }
  const bool is_step = input.rank() == 2;
  RnnSizes sizes;
  sizes.time_major = time_major;
  sizes.batch = is_step ? input.dim(0) : input.dim(time_major ? 1 : 0);
  sizes.time = is_step ? 1 : input.dim(time_major ? 0 : 1);
  sizes.input = input.dim(input.rank() - 1);
  sizes.units = weights.dim(0);
  PF_ASSIGN_OR_RETURN(const WeightType type, WeightTypeOf(*context, 1));
  const DType weight = context->input_type(1);
  PF_RETURN_IF_ERROR(RequireTensor(*context, 0, DType::kFloat, input));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 1, weight, Shape({sizes.units, sizes.input})));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 2, weight, Shape({sizes.units, sizes.units})));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 3, DType::kFloat, Shape({sizes.units})));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 4, DType::kFloat, Shape({sizes.batch, sizes.units})));
  float input_scale = 1, recurrent_scale = 1;
  if (type == WeightType::kInt8) {
    PF_ASSIGN_OR_RETURN(input_scale, ScaleOfInput(*context, 1));
    PF_ASSIGN_OR_RETURN(recurrent_scale, ScaleOfInput(*context, 2));
  }
  PF_ASSIGN_OR_RETURN(const bool asymmetric, BoolAttr(node, "asymmetric_quantize_inputs"));
  PF_ASSIGN_OR_RETURN(const RecurrentActivation activation, ReadRecurrentActivation(node));
  auto state = std::make_unique<RnnState>();
  PF_ASSIGN_OR_RETURN(state->rnn, FloatRnn::Make(sizes, type, input_scale, recurrent_scale, asymmetric, activation));
  if (type == WeightType::kFloat) {
    const float *values = FloatWeights(*context, 1), *recurrent = FloatWeights(*context, 2);
    if (values != nullptr && recurrent != nullptr) {
      PF_RETURN_IF_ERROR(state->rnn.Pack(values, recurrent));
      context->ReleaseInput(1);
      context->ReleaseInput(2);
    }
  }
  Shape output = input;
  output.set_dim(input.rank() - 1, sizes.units);
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, output));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, context->input_shape(4)));
  ScratchParts parts;
  PF_RETURN_IF_ERROR(parts.Add(1, state->rnn.scratch_size()).status());
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeRnn(ComputeContext* context) {
  context->state<RnnState>().rnn.Compute(context->input<float>(0), context->input_bytes(1), context->input_bytes(2),
                                         context->input<float>(3), CopiedState<float>(context, 4, 1),
                                         context->scratch(), context->output<float>(0));
  return absl::OkStatus();
}

// --- SVDF ------------------------------------------------------------------------------------------------------------

struct SvdfState : public KernelState {
  bool is_integer = false;
  FloatSvdf real;
  IntegerSvdf integer;
  int bias = -1, state = -1;  // Inputs.
};

// Inputs: input, feature weights, time weights, optional bias, state.
absl::Status PrepareSvdf(PrepareContext* context) {
  PF_RETURN_IF_ERROR(RequireInputs(*context, 4, 5));
  const Node& node = context->node();
  auto state = std::make_unique<SvdfState>();
  state->state = context->num_inputs() - 1;
  state->bias = context->num_inputs() == 5 ? 3 : -1;
  for (int i = 0; i < 3; ++i) PF_RETURN_IF_ERROR(RequireRank(context, i, 2));
  SvdfSizes sizes;
  PF_ASSIGN_OR_RETURN(sizes.rank, IntAttr(node, "rank"));
  const Shape &input = context->input_shape(0), &feature = context->input_shape(1), &time = context->input_shape(2);
  sizes.batch = input.dim(0);
  sizes.input = input.dim(1);
  if (sizes.rank < 1 || feature.dim(0) % sizes.rank != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("attr 'rank' is ", sizes.rank, ", expected a divisor of the ", feature.dim(0), " filters"));
  }
  sizes.units = feature.dim(0) / sizes.rank;
  sizes.memory = time.dim(1);
  int64_t state_columns = 0;
  if (__builtin_mul_overflow(sizes.filters(), sizes.memory, &state_columns)) {
    return absl::InvalidArgumentError("the state has too many elements");
  }
  state->is_integer = context->input_type(0) == DType::kInt8;
  PF_ASSIGN_OR_RETURN(const WeightType type, WeightTypeOf(*context, 1));
  if (state->is_integer && type != WeightType::kInt8) {
    return absl::UnimplementedError("no kernel for an input of int8 and weights of float");
  }
  PF_RETURN_IF_ERROR(RequireTensor(*context, 0, state->is_integer ? DType::kInt8 : DType::kFloat, input));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 1, context->input_type(1), Shape({sizes.filters(), sizes.input})));
  PF_RETURN_IF_ERROR(RequireTensor(*context, 2, state->is_integer ? DType::kInt16 : context->input_type(1),
                                   Shape({sizes.filters(), sizes.memory})));
  if (state->bias >= 0) {
    PF_RETURN_IF_ERROR(
        RequireTensor(*context, 3, state->is_integer ? DType::kInt32 : DType::kFloat, Shape({sizes.units})));
  }
  PF_RETURN_IF_ERROR(RequireTensor(*context, state->state, state->is_integer ? DType::kInt16 : DType::kFloat,
                                   Shape({sizes.batch, state_columns})));
  float feature_scale = 1, time_scale = 1;
  if (type == WeightType::kInt8) {
    PF_ASSIGN_OR_RETURN(feature_scale, ScaleOfInput(*context, 1));
    PF_ASSIGN_OR_RETURN(time_scale, ScaleOfInput(*context, 2));
  }
  ScratchParts parts;
  if (state->is_integer) {
    PF_ASSIGN_OR_RETURN(const Affine of_input, InputAffine(*context, 0));
    PF_ASSIGN_OR_RETURN(const Affine of_state, InputAffine(*context, state->state));
    PF_ASSIGN_OR_RETURN(const Affine of_output, OutputAffine(*context));
    PF_ASSIGN_OR_RETURN(state->integer,
                        IntegerSvdf::Make(sizes, of_input, feature_scale, time_scale, of_state, of_output));
  } else {
    PF_ASSIGN_OR_RETURN(const bool asymmetric, BoolAttr(node, "asymmetric_quantize_inputs"));
    PF_ASSIGN_OR_RETURN(const RecurrentActivation activation, ReadRecurrentActivation(node));
    PF_ASSIGN_OR_RETURN(state->real, FloatSvdf::Make(sizes, type, feature_scale, time_scale, asymmetric, activation));
    PF_RETURN_IF_ERROR(parts.Add(1, state->real.scratch_size()).status());
  }
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 0, Shape({sizes.batch, sizes.units})));
  PF_RETURN_IF_ERROR(SetCheckedShape(context, 1, context->input_shape(state->state)));
  parts.Request(context);
  context->SetState(std::move(state));
  return absl::OkStatus();
}

absl::Status ComputeSvdf(ComputeContext* context) {
  const auto& state = context->state<SvdfState>();
  if (state.is_integer) {
    state.integer.Compute(context->input<int8_t>(0), context->input<int8_t>(1), context->input<int16_t>(2),
                          state.bias < 0 ? nullptr : context->input<int32_t>(state.bias),
                          CopiedState<int16_t>(context, state.state, 1), context->output<int8_t>(0));
  } else {
    state.real.Compute(context->input<float>(0), context->input_bytes(1), context->input_bytes(2),
                       state.bias < 0 ? nullptr : context->input<float>(state.bias),
                       CopiedState<float>(context, state.state, 1), context->scratch(), context->output<float>(0));
  }
  return absl::OkStatus();
}

}  // namespace

DEFINE_KERNEL(TFLiteLSTM) {
  return Kernel("TensorFlow Lite's LSTM over a sequence: float, int8 weights, or int8 with an int16 cell state")
      .Prepare(PrepareLstm)
      .Compute(ComputeLstm);
}

DEFINE_KERNEL(TFLiteRNN) {
  return Kernel("activation(x * weights + state * recurrent weights + bias) over a sequence; weights float or int8")
      .Prepare(PrepareRnn)
      .Compute(ComputeRnn);
}

DEFINE_KERNEL(TFLiteSVDF) {
  return Kernel("TensorFlow Lite's low-rank filter over time: float, int8 weights, or int8 with an int16 state")
      .Prepare(PrepareSvdf)
      .Compute(ComputeSvdf);
}

}  // namespace permafrost
