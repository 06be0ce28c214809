// Fused recurrent operators: LSTM, RNN and SVDF. They become nodes of their own (TFLiteLSTM, TFLiteRNN, TFLiteSVDF)
// that compute with codes as the file's operator does. Their states, variable tensors in the file, become variables
// that are read before the node and assigned after it.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "io/formats/tflite/operator_import.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

using tflite::BuiltinOperator;

const Op& LstmOp() {
  static const Op op = Op::Named("TFLiteLSTM");
  return op;
}
const Op& RnnOp() {
  static const Op op = Op::Named("TFLiteRNN");
  return op;
}
const Op& SvdfOp() {
  static const Op op = Op::Named("TFLiteSVDF");
  return op;
}

absl::StatusOr<AttrValue> ActivationAttr(tflite::ActivationFunctionType activation) {
  if (activation < tflite::ActivationFunctionType::NONE || activation > tflite::ActivationFunctionType::SIGN_BIT) {
    return absl::UnimplementedError(
        absl::StrCat("has the fused activation ", static_cast<int>(activation), ", which is not supported"));
  }
  return AttrValue::String(tflite::EnumNameActivationFunctionType(activation));
}

struct Quantization {
  float scale = 0;
  int64_t zero_point = 0;
};

// Returns the scale of a tensor, zeros for one without. Recurrent operators have one scale for each tensor.
absl::StatusOr<Quantization> QuantizationOf(const tflite::Tensor& tensor, absl::string_view place) {
  const auto* quantization = tensor.quantization();
  if (!IsQuantized(tensor)) return Quantization();
  if (quantization->details() != nullptr || quantization->scale()->size() != 1) {
    return absl::UnimplementedError(absl::StrCat(place, " has ", quantization->scale()->size(),
                                                 " scales, expected one: those of slices are not supported"));
  }
  Quantization result;
  result.scale = quantization->scale()->Get(0);
  const auto* points = quantization->zero_point();
  if (points != nullptr && points->size() > 0) result.zero_point = points->Get(0);
  return result;
}

// The inputs of a recurrent node with their scales, as they are collected.
struct Inputs {
  std::vector<TensorRef> tensors;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;

  // Adds `tensor`, which is, or replaces, operand i.
  absl::Status Add(OperatorImport* op, int i, TensorRef tensor) {
    PF_ASSIGN_OR_RETURN(const Quantization quantization,
                        QuantizationOf(op->InputTensor(i), absl::StrCat("operand ", i)));
    tensors.push_back(tensor);
    scales.push_back(quantization.scale);
    zero_points.push_back(quantization.zero_point);
    return absl::OkStatus();
  }
  // Adds operand i.
  absl::Status Add(OperatorImport* op, int i) {
    PF_ASSIGN_OR_RETURN(const TensorRef tensor, op->Input(i));
    return Add(op, i, tensor);
  }
};

// Adds the value of the state in operand i, and returns it.
absl::StatusOr<TensorRef> AddState(OperatorImport* op, int i, Inputs* inputs) {
  PF_ASSIGN_OR_RETURN(const TensorRef state, op->State(i));
  PF_RETURN_IF_ERROR(inputs->Add(op, i, state));
  return state;
}

// --- LSTM ------------------------------------------------------------------------------------------------------------

constexpr int kOutputState = 18, kCellState = 19;

// Options that LSTM operators share.
struct LstmOptions {
  tflite::ActivationFunctionType activation = tflite::ActivationFunctionType::TANH;
  float cell_clip = 0, proj_clip = 0;
  bool time_major = false, asymmetric = false, diagonal = false;
};

// Where the file's operator has the operands that UNIDIRECTIONAL_SEQUENCE_LSTM has at 0 to 23; -1 for an absent one.
using LstmOperands = std::array<int, 24>;

// Adds the node of one direction; `x` is its input, which replaces operand 0 of the file, with the weights in
// `replaced` (by position in LstmOperands) in place of the file's.
absl::StatusOr<TensorRef> AddLstm(OperatorImport* op, const LstmOperands& operands, const LstmOptions& options,
                                  TensorRef x, const std::array<TensorRef, 5>& replaced = {}) {
  Inputs inputs;
  std::vector<int64_t> numbers;
  std::array<TensorRef, 2> states;
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    const int i = operands[static_cast<size_t>(k)];
    const bool is_state = k == kOutputState || k == kCellState;
    if (i < 0 || !op->HasInput(i)) {
      if (is_state) return absl::InvalidArgumentError(absl::StrCat("lacks its state, operand ", i));
      continue;
    }
    if (k == 0) {
      PF_RETURN_IF_ERROR(inputs.Add(op, i, x));
    } else if (is_state) {
      PF_ASSIGN_OR_RETURN(states[static_cast<size_t>(k - kOutputState)], AddState(op, i, &inputs));
    } else if (k < 5 && replaced[static_cast<size_t>(k)].node != nullptr) {
      PF_RETURN_IF_ERROR(inputs.Add(op, i, replaced[static_cast<size_t>(k)]));
    } else {
      PF_RETURN_IF_ERROR(inputs.Add(op, i));
    }
    numbers.push_back(k);
  }
  PF_ASSIGN_OR_RETURN(const AttrValue activation, ActivationAttr(options.activation));
  OperatorImport::Attrs attrs = {{"operands", AttrValue::IntList(numbers)},
                                 {"input_scales", AttrValue::FloatList(inputs.scales)},
                                 {"input_zero_points", AttrValue::IntList(inputs.zero_points)},
                                 {"activation", activation},
                                 {"cell_clip", AttrValue::Float(options.cell_clip)},
                                 {"proj_clip", AttrValue::Float(options.proj_clip)},
                                 {"time_major", AttrValue::Bool(options.time_major)},
                                 {"asymmetric_quantize_inputs", AttrValue::Bool(options.asymmetric)},
                                 {"diagonal_recurrent_tensors", AttrValue::Bool(options.diagonal)}};
  PF_ASSIGN_OR_RETURN(const DType type, op->TypeOf(x));
  PF_ASSIGN_OR_RETURN(const DType output_type, op->TypeOf(states[0]));
  PF_ASSIGN_OR_RETURN(const DType cell_type, op->TypeOf(states[1]));
  const bool is_integer = type == DType::kInt8;
  if ((!is_integer && type != DType::kFloat) || output_type != type ||
      cell_type != (is_integer ? DType::kInt16 : DType::kFloat)) {
    return absl::UnimplementedError(absl::StrCat("computes with ", DTypeName(type), ", an output state of ",
                                                 DTypeName(output_type), " and a cell state of ", DTypeName(cell_type),
                                                 "; expected floats, or int8, int8 and int16, as LiteRT's kernels do"));
  }
  if (is_integer) {
    // The scales of the sums of gates, which matter with layer normalisation, and of the hidden state.
    constexpr uint32_t kIntermediates = 5;
    const auto* tensors = op->op().intermediates();
    if (tensors == nullptr || tensors->size() != kIntermediates) {
      return absl::UnimplementedError(absl::StrCat("has ", tensors == nullptr ? 0 : tensors->size(),
                                                   " intermediate tensors, expected ", kIntermediates));
    }
    std::vector<float> scales;
    Quantization quantization;
    for (const int32_t i : *tensors) {
      quantization = {};
      if (i >= 0) {
        PF_ASSIGN_OR_RETURN(quantization,
                            QuantizationOf(op->subgraph().tensor(i), absl::StrCat("intermediate tensor ", i)));
      }
      scales.push_back(quantization.scale);
    }
    attrs.emplace_back("intermediate_scales", AttrValue::FloatList(scales));
    attrs.emplace_back("hidden_zero_point", AttrValue::Int(quantization.zero_point));
  }
  attrs.emplace_back("T", AttrValue::Type(type));
  attrs.emplace_back("Tcell", AttrValue::Type(cell_type));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(LstmOp(), inputs.tensors, attrs));
  PF_RETURN_IF_ERROR(op->SetState(operands[kOutputState], {node, 1}));
  PF_RETURN_IF_ERROR(op->SetState(operands[kCellState], {node, 2}));
  return TensorRef{node, 0};
}

Results FullLstm(OperatorImport* op, const LstmOptions& options) {
  LstmOperands operands;
  for (int i = 0; i < static_cast<int>(operands.size()); ++i) operands[static_cast<size_t>(i)] = i;
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, AddLstm(op, operands, options, x));
  return std::vector<TensorRef>{y};
}

Results SequenceLstm(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::UnidirectionalSequenceLSTMOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  return FullLstm(
      op, {options->fused_activation_function(), options->cell_clip(), options->proj_clip(), options->time_major(),
           options->asymmetric_quantize_inputs(), options->diagonal_recurrent_tensors()});
}

absl::StatusOr<TensorRef> Joined(OperatorImport* op, TensorRef a, TensorRef b, int axis) {
  PF_ASSIGN_OR_RETURN(const TensorRef position, op->Const(Tensor::Scalar<int32_t>(axis)));
  return op->Emit(ops::kConcatV2, {a, b, position}, {{"N", AttrValue::Int(2)}});
}

// The value of a state: a variable tensor, or what the graph computes.
absl::StatusOr<TensorRef> BasicState(OperatorImport* op, int i) {
  return op->HasInput(i) && op->InputTensor(i).is_variable() ? op->State(i) : op->Input(i);
}

absl::Status SetBasicState(OperatorImport* op, int i, TensorRef value) {
  return op->InputTensor(i).is_variable() ? op->SetState(i, value) : absl::OkStatus();
}

// One step of a cell whose gates have one matrix: input, candidate, forget and output gate, one below the other.
// Operands: input, output before, matrix for both, bias, cell before. Results: output, cell, the operands of the matrix
// side by side, the sums.
Results BasicLstm(OperatorImport* op, const tflite::LSTMOptions& options) {
  constexpr int kOutputBefore = 1, kCellBefore = 4, kGates = 4;
  if (op->num_inputs() != 5 || op->num_outputs() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("has ", op->num_inputs(), " operands and ", op->num_outputs(),
                                                   " results, expected 5 and 4 for the kernel type BASIC"));
  }
  for (int i = 0; i < op->num_inputs(); ++i) {
    if (op->InputType(i) != DType::kFloat) {
      return absl::UnimplementedError(absl::StrCat("has the kernel type BASIC and an operand of ",
                                                   DTypeName(op->InputType(i)), ", expected floats"));
    }
  }
  if (options.fused_activation_function() != tflite::ActivationFunctionType::TANH || options.cell_clip() != 0 ||
      options.proj_clip() != 0) {
    return absl::UnimplementedError("has the kernel type BASIC with clips or an activation other than TANH");
  }
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef before, BasicState(op, kOutputBefore));
  PF_ASSIGN_OR_RETURN(const TensorRef matrix, op->Input(2));
  PF_ASSIGN_OR_RETURN(const TensorRef bias, op->Input(3));
  PF_ASSIGN_OR_RETURN(const TensorRef cell_before, BasicState(op, kCellBefore));
  PF_ASSIGN_OR_RETURN(const TensorRef both, Joined(op, x, before, 1));
  PF_ASSIGN_OR_RETURN(TensorRef sums, op->Emit(ops::kMatMul, {both, matrix}, {{"transpose_b", AttrValue::Bool(true)}}));
  PF_ASSIGN_OR_RETURN(sums, op->Emit(ops::kBiasAdd, {sums, bias}));
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Const(Tensor::Scalar<int32_t>(1)));
  PF_ASSIGN_OR_RETURN(Node * gates, op->Add(ops::kSplit, {axis, sums}, {{"num_split", AttrValue::Int(kGates)}}));
  PF_ASSIGN_OR_RETURN(const TensorRef input_gate, op->Emit(ops::kSigmoid, {TensorRef{gates, 0}}));
  PF_ASSIGN_OR_RETURN(const TensorRef candidate, op->Emit(ops::kTanh, {TensorRef{gates, 1}}));
  PF_ASSIGN_OR_RETURN(const TensorRef forget_gate, op->Emit(ops::kSigmoid, {TensorRef{gates, 2}}));
  PF_ASSIGN_OR_RETURN(const TensorRef output_gate, op->Emit(ops::kSigmoid, {TensorRef{gates, 3}}));
  PF_ASSIGN_OR_RETURN(const TensorRef added, op->Emit(ops::kMul, {input_gate, candidate}));
  PF_ASSIGN_OR_RETURN(const TensorRef kept, op->Emit(ops::kMul, {forget_gate, cell_before}));
  PF_ASSIGN_OR_RETURN(const TensorRef cell, op->Emit(ops::kAddV2, {added, kept}));
  PF_ASSIGN_OR_RETURN(const TensorRef shown, op->Emit(ops::kTanh, {cell}));
  PF_ASSIGN_OR_RETURN(const TensorRef y, op->Emit(ops::kMul, {output_gate, shown}));
  PF_RETURN_IF_ERROR(SetBasicState(op, kOutputBefore, y));
  PF_RETURN_IF_ERROR(SetBasicState(op, kCellBefore, cell));
  return std::vector<TensorRef>{y, cell, both, sums};
}

// The last result is the output; files of 2017 have scratch tensors before it. The BASIC form has other operands.
Results Lstm(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::LSTMOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->kernel_type() == tflite::LSTMKernelType::BASIC) return BasicLstm(op, *options);
  if (op->num_outputs() != 1) {
    return absl::UnimplementedError(absl::StrCat("has ", op->num_outputs(), " results, expected 1"));
  }
  return FullLstm(op, {options->fused_activation_function(), options->cell_clip(), options->proj_clip(), false,
                       options->asymmetric_quantize_inputs(), false});
}

// --- Both directions -------------------------------------------------------------------------------------------------

// Reverses the steps of a sequence.
absl::StatusOr<TensorRef> Reversed(OperatorImport* op, TensorRef x, bool time_major) {
  PF_ASSIGN_OR_RETURN(const TensorRef axis, op->Ints({time_major ? 0 : 1}));
  return op->Emit(ops::kReverseV2, {x, axis});
}

// Returns the results of both directions; with `merge`, one next to the other in the last dimension.
Results BothDirections(OperatorImport* op, TensorRef forward, TensorRef backward, bool time_major, bool merge) {
  if (op->num_outputs() != (merge ? 1 : 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", op->num_outputs(), " results, expected ", merge ? "1, as it merges them" : "2"));
  }
  PF_ASSIGN_OR_RETURN(backward, Reversed(op, backward, time_major));
  if (!merge) return std::vector<TensorRef>{forward, backward};
  PF_ASSIGN_OR_RETURN(const TensorRef y, Joined(op, forward, backward, 2));
  return std::vector<TensorRef>{y};
}

// The auxiliary input of a bidirectional operator. With weights it extends the input of both directions. Without, it is
// the input of the backward direction of an LSTM, and an RNN ignores it.
struct Auxiliary {
  TensorRef forward, backward;  // Inputs of the directions.
  bool has_weights = false;
};

absl::StatusOr<Auxiliary> ReadAuxiliary(OperatorImport* op, int input, absl::Span<const int> weights,
                                        bool replaces_backward) {
  Auxiliary result;
  PF_ASSIGN_OR_RETURN(result.forward, op->Input(0));
  result.backward = result.forward;
  if (!op->HasInput(input)) return result;
  for (const int i : weights) result.has_weights |= op->HasInput(i);
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(input));
  if (!result.has_weights) {
    if (replaces_backward) result.backward = x;
    return result;
  }
  PF_ASSIGN_OR_RETURN(result.forward, Joined(op, result.forward, x, 2));
  result.backward = result.forward;
  return result;
}

// Sums over the input and over the auxiliary input are one sum over both. Codes of int8 have two scales then.
absl::StatusOr<TensorRef> WithAuxiliaryWeights(OperatorImport* op, int weights, int auxiliary) {
  if (op->InputType(weights) != DType::kFloat) {
    return absl::UnimplementedError("has auxiliary weights of int8, which are not supported");
  }
  PF_ASSIGN_OR_RETURN(const TensorRef a, op->Input(weights));
  PF_ASSIGN_OR_RETURN(const TensorRef b, op->Input(auxiliary));
  return Joined(op, a, b, 1);
}

// Operands: input; 17 of the forward direction, 17 of the backward one, in the order of UNIDIRECTIONAL_SEQUENCE_LSTM;
// output and cell state of each; auxiliary input and its weights, 4 of each direction.
Results BidirectionalLstm(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::BidirectionalSequenceLSTMOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  constexpr int kOperands = 17, kStates = 35, kAuxiliary = 39;
  if (op->InputType(0) != DType::kFloat) return absl::UnimplementedError("computes with codes, expected floats");
  const LstmOptions common = {options->fused_activation_function(),
                              options->cell_clip(),
                              options->proj_clip(),
                              options->time_major(),
                              options->asymmetric_quantize_inputs(),
                              false};
  PF_ASSIGN_OR_RETURN(const Auxiliary inputs, ReadAuxiliary(op, kAuxiliary, {40, 41, 42, 43, 44, 45, 46, 47}, true));
  std::array<TensorRef, 2> results;
  for (int direction = 0; direction < 2; ++direction) {
    LstmOperands operands;
    operands.fill(-1);
    operands[0] = 0;
    for (int k = 1; k <= kOperands; ++k) operands[static_cast<size_t>(k)] = direction * kOperands + k;
    operands[kOutputState] = kStates + 2 * direction;
    operands[kCellState] = kStates + 2 * direction + 1;
    std::array<TensorRef, 5> replaced = {};
    for (int gate = 1; inputs.has_weights && gate <= 4; ++gate) {
      const int weights = operands[static_cast<size_t>(gate)];
      if (!op->HasInput(weights)) continue;
      PF_ASSIGN_OR_RETURN(replaced[static_cast<size_t>(gate)],
                          WithAuxiliaryWeights(op, weights, kAuxiliary + 4 * direction + gate));
    }
    TensorRef x = direction == 0 ? inputs.forward : inputs.backward;
    if (direction == 1) {
      PF_ASSIGN_OR_RETURN(x, Reversed(op, x, options->time_major()));
    }
    PF_ASSIGN_OR_RETURN(results[static_cast<size_t>(direction)], AddLstm(op, operands, common, x, replaced));
  }
  return BothDirections(op, results[0], results[1], options->time_major(), options->merge_outputs());
}

// --- RNN -------------------------------------------------------------------------------------------------------------

// `first` is the operand with the weights; recurrent weights, bias and state follow.
absl::StatusOr<TensorRef> AddRnn(OperatorImport* op, TensorRef x, int first, TensorRef weights,
                                 tflite::ActivationFunctionType function, bool time_major, bool asymmetric) {
  if (op->InputType(0) != DType::kFloat || IsQuantized(op->InputTensor(0))) {
    return absl::UnimplementedError("computes with codes, expected floats");
  }
  Inputs inputs;
  PF_RETURN_IF_ERROR(inputs.Add(op, 0, x));
  PF_RETURN_IF_ERROR(weights.node != nullptr ? inputs.Add(op, first, weights) : inputs.Add(op, first));
  PF_RETURN_IF_ERROR(inputs.Add(op, first + 1));
  PF_RETURN_IF_ERROR(inputs.Add(op, first + 2));
  PF_RETURN_IF_ERROR(AddState(op, first + 3, &inputs).status());
  PF_ASSIGN_OR_RETURN(const AttrValue activation, ActivationAttr(function));
  PF_ASSIGN_OR_RETURN(Node * node, op->Add(RnnOp(), inputs.tensors,
                                           {{"T", AttrValue::Type(DType::kFloat)},
                                            {"input_scales", AttrValue::FloatList(inputs.scales)},
                                            {"activation", activation},
                                            {"time_major", AttrValue::Bool(time_major)},
                                            {"asymmetric_quantize_inputs", AttrValue::Bool(asymmetric)}}));
  PF_RETURN_IF_ERROR(op->SetState(first + 3, {node, 1}));
  return TensorRef{node, 0};
}

Results Rnn(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::RNNOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, AddRnn(op, x, 1, {}, options->fused_activation_function(), false,
                                                options->asymmetric_quantize_inputs()));
  return std::vector<TensorRef>{y};
}

Results SequenceRnn(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::SequenceRNNOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  PF_ASSIGN_OR_RETURN(const TensorRef x, op->Input(0));
  PF_ASSIGN_OR_RETURN(const TensorRef y, AddRnn(op, x, 1, {}, options->fused_activation_function(),
                                                options->time_major(), options->asymmetric_quantize_inputs()));
  return std::vector<TensorRef>{y};
}

// Operands: input; weights, recurrent weights, bias and state of each direction; auxiliary input and its weights.
Results BidirectionalRnn(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::BidirectionalSequenceRNNOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  constexpr int kAuxiliary = 9;
  PF_ASSIGN_OR_RETURN(const Auxiliary inputs, ReadAuxiliary(op, kAuxiliary, {10, 11}, false));
  std::array<TensorRef, 2> results;
  for (int direction = 0; direction < 2; ++direction) {
    const int first = 1 + 4 * direction;
    TensorRef weights, x = direction == 0 ? inputs.forward : inputs.backward;
    if (inputs.has_weights) {
      PF_ASSIGN_OR_RETURN(weights, WithAuxiliaryWeights(op, first, kAuxiliary + 1 + direction));
    }
    if (direction == 1) {
      PF_ASSIGN_OR_RETURN(x, Reversed(op, x, options->time_major()));
    }
    PF_ASSIGN_OR_RETURN(results[static_cast<size_t>(direction)],
                        AddRnn(op, x, first, weights, options->fused_activation_function(), options->time_major(),
                               options->asymmetric_quantize_inputs()));
  }
  return BothDirections(op, results[0], results[1], options->time_major(), options->merge_outputs());
}

// --- SVDF ------------------------------------------------------------------------------------------------------------

// Operands: input, feature weights, time weights, optional bias, state.
Results Svdf(OperatorImport* op) {
  const auto* options = op->op().builtin_options_as<tflite::SVDFOptions>();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  constexpr int kBias = 3, kState = 4;
  Inputs inputs;
  for (int i = 0; i < kBias; ++i) PF_RETURN_IF_ERROR(inputs.Add(op, i));
  if (op->HasInput(kBias)) PF_RETURN_IF_ERROR(inputs.Add(op, kBias));
  PF_ASSIGN_OR_RETURN(const TensorRef state, AddState(op, kState, &inputs));
  PF_ASSIGN_OR_RETURN(const DType state_type, op->TypeOf(state));
  const DType type = op->InputType(0);
  const bool is_integer = type == DType::kInt8;
  if ((!is_integer && type != DType::kFloat) || op->OutputType(0) != type ||
      state_type != (is_integer ? DType::kInt16 : DType::kFloat)) {
    return absl::UnimplementedError(absl::StrCat("computes with ", DTypeName(type), " and a state of ",
                                                 DTypeName(state_type), ", expected floats, or int8 and int16"));
  }
  PF_ASSIGN_OR_RETURN(const Quantization output, QuantizationOf(op->OutputTensor(0), "its result"));
  PF_ASSIGN_OR_RETURN(const AttrValue activation, ActivationAttr(options->fused_activation_function()));
  PF_ASSIGN_OR_RETURN(
      Node * node, op->Add(SvdfOp(), inputs.tensors,
                           {{"T", AttrValue::Type(type)},
                            {"Tstate", AttrValue::Type(state_type)},
                            {"rank", AttrValue::Int(options->rank())},
                            {"input_scales", AttrValue::FloatList(inputs.scales)},
                            {"input_zero_points", AttrValue::IntList(inputs.zero_points)},
                            {"output_scale", AttrValue::Float(output.scale)},
                            {"output_zero_point", AttrValue::Int(output.zero_point)},
                            {"activation", activation},
                            {"asymmetric_quantize_inputs", AttrValue::Bool(options->asymmetric_quantize_inputs())}}));
  PF_RETURN_IF_ERROR(op->SetState(kState, {node, 1}));
  return std::vector<TensorRef>{{node, 0}};
}

// Codes are operands of the nodes as they are.
constexpr OperatorRow kRows[] = {
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, 1, 1, SequenceLstm, Codes::kMoved},
    {BuiltinOperator::LSTM, 1, -1, Lstm, Codes::kMoved},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, 1, -1, BidirectionalLstm, Codes::kMoved},
    {BuiltinOperator::RNN, 5, 1, Rnn, Codes::kMoved},
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, 5, 1, SequenceRnn, Codes::kMoved},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN, 9, -1, BidirectionalRnn, Codes::kMoved},
    {BuiltinOperator::SVDF, 3, 1, Svdf, Codes::kMoved},
};

}  // namespace

absl::Span<const OperatorRow> RecurrentOperators() { return kRows; }

}  // namespace permafrost
