// Implements recurrent operators. Each element of the batch is independent of the others, so a step computes one row.
#include "runtime_check/kernels/integer/integer_recurrent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/kernels/integer/integer_hybrid.h"

namespace permafrost {
namespace {

absl::Status CheckScale(float scale, absl::string_view tensor) { return CheckScales({&scale, 1}, 1, tensor); }

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float Activate(RecurrentActivation activation, float x) {
  switch (activation) {
    case RecurrentActivation::kNone:
      break;
    case RecurrentActivation::kRelu:
      return std::max(x, 0.0f);
    case RecurrentActivation::kReluN1To1:
      return std::clamp(x, -1.0f, 1.0f);
    case RecurrentActivation::kRelu6:
      return std::clamp(x, 0.0f, 6.0f);
    case RecurrentActivation::kTanh:
      return std::tanh(x);
    case RecurrentActivation::kSignBit:
      return std::signbit(x) ? 1.0f : 0.0f;
    case RecurrentActivation::kSigmoid:
      return Sigmoid(x);
  }
  return x;
}

// x[i] = activation(x[i]).
void ActivateAll(RecurrentActivation activation, int64_t count, float* x) {
  if (activation == RecurrentActivation::kTanh) return BestInnerLoops().tanh(count, x, x);
  if (activation == RecurrentActivation::kSigmoid) return BestInnerLoops().sigmoid(count, x, x);
  for (int64_t i = 0; i < count; ++i) x[i] = Activate(activation, x[i]);
}

PF_INLINE inline float Dot(int64_t count, const float* a, const float* b) {
  constexpr int64_t kSums = 16;  // Independent sums, which the compiler vectorises.
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i + 4 <= count; i += 4) {
    for (int64_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  for (int64_t width = kSums / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  }
  return sums[0];
}

// Sums wrap around, as those of the reference kernels.
template <typename A, typename B>
int32_t IntegerDot(int64_t count, const A* a, const B* b) {
  uint32_t sum = 0;
  Multiversion([&]() PF_INLINE {
    for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(int32_t{a[i]} * b[i]);
  });
  return static_cast<int32_t>(sum);
}

int32_t Sum(int64_t count, const int8_t* codes) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(int32_t{codes[i]});
  return static_cast<int32_t>(sum);
}

int16_t Saturate16(int64_t x) { return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767)); }
int8_t Saturate8(int64_t x) { return static_cast<int8_t>(std::clamp<int64_t>(x, -128, 127)); }

// A row of floats, with its codes where weights are int8.
class Row {
 public:
  Row(WeightType weights, bool asymmetric, int64_t count, const float* values, int8_t* codes)
      : weights_(weights), count_(count), values_(values), codes_(codes) {
    if (weights == WeightType::kInt8) {
      scale_ = asymmetric ? QuantizeRowAsymmetric(count, values, codes) : QuantizeRowSymmetric(count, values, codes);
    }
  }

  // y[r] += row r of the weights times this row, for r in [0, rows).
  void AddProduct(const void* weights, float scale, int64_t rows, float* y) const {
    if (weights_ == WeightType::kFloat) {
      const auto* values = static_cast<const float*>(weights);
      Multiversion([&]() PF_INLINE {
        for (int64_t r = 0; r < rows; ++r) y[r] += Dot(count_, values + r * count_, values_);
      });
      return;
    }
    const auto* codes = static_cast<const int8_t*>(weights);
    for (int64_t r = 0; r < rows; ++r) {
      int32_t sum = IntegerDot(count_, codes + r * count_, codes_);
      if (scale_.zero_point != 0) {
        sum = WrapSubtract(sum, WrapMultiply(scale_.zero_point, Sum(count_, codes + r * count_)));
      }
      y[r] += static_cast<float>(sum) * (scale_.scale * scale);
    }
  }

 private:
  const WeightType weights_;
  const int64_t count_;
  const float* const values_;
  const int8_t* const codes_;
  RowScale scale_ = {1.0f, 0};
};

// Elements of optional float vectors, or of int8 vectors with a scale.
float ElementAt(WeightType type, const void* values, float scale, int64_t i) {
  return type == WeightType::kFloat ? static_cast<const float*>(values)[i]
                                    : scale * static_cast<float>(static_cast<const int8_t*>(values)[i]);
}

// Normalises to mean 0 and variance 1.
void Normalize(int64_t count, float* x) {
  if (count == 0) return;
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(count);
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  constexpr float kGuard = 1e-8f;  // Of TensorFlow Lite's definition, against a variance of 0.
  const float factor = 1.0f / std::sqrt(squares / static_cast<float>(count) + kGuard);
  for (int64_t i = 0; i < count; ++i) x[i] = (x[i] - mean) * factor;
}

void Clip(float limit, int64_t count, float* x) {
  if (!(limit > 0)) return;
  for (int64_t i = 0; i < count; ++i) x[i] = std::clamp(x[i], -limit, limit);
}

absl::Status CheckLstm(const LstmSizes& sizes, const LstmOperands& operands) {
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.time, sizes.input}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.time, sizes.output}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.cell}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.cell, sizes.input}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.cell, sizes.output}));
  if (operands.projection == nullptr && sizes.cell != sizes.output) {
    return absl::InvalidArgumentError(
        absl::StrCat("the LSTM has ", sizes.cell, " cells and ", sizes.output, " outputs, but no projection"));
  }
  constexpr const char* kNames[] = {"input", "forget", "cell", "output"};
  const bool is_coupled = operands.input_weights[kInputGate] == nullptr;
  const bool has_norm = operands.layer_norms[kForgetGate] != nullptr;
  for (int gate = is_coupled ? 1 : 0; gate < 4; ++gate) {
    if (operands.input_weights[gate] == nullptr || operands.recurrent_weights[gate] == nullptr ||
        operands.biases[gate] == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("weights or bias of the ", kNames[gate], " gate are absent"));
    }
    if ((operands.layer_norms[gate] != nullptr) != has_norm) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer norm coefficients of the ", kNames[gate], " gate are absent, or those of others"));
    }
  }
  return absl::OkStatus();
}

// Visits the rows of a sequence in order of time: visit(row of inputs and outputs, element of the batch).
template <typename Visit>
void ForEachStep(int64_t batch, int64_t time, bool time_major, Visit visit) {
  for (int64_t t = 0; t < time; ++t) {
    for (int64_t b = 0; b < batch; ++b) visit(time_major ? t * batch + b : b * time + t, b);
  }
}

// Limits the scratch memory for products of the input that are computed ahead, to half of a usual L2 cache.
constexpr int64_t kMostSumBytes = int64_t{256} << 10;

}  // namespace

absl::StatusOr<PackedRecurrence> PackedRecurrence::Make(int64_t input, int64_t state, int64_t units,
                                                        absl::Span<const float* const> input_weights,
                                                        absl::Span<const float* const> state_weights) {
  const auto count = static_cast<int64_t>(input_weights.size());
  PF_RETURN_IF_ERROR(CheckNumElements({units, count, input}));
  PF_RETURN_IF_ERROR(CheckNumElements({units, count, state}));
  PackedRecurrence made;
  made.input_ = input;
  made.shape_ = {input + state, units * count};
  const InnerLoops& loops = BestInnerLoops();
  PF_ASSIGN_OR_RETURN(const int64_t size, made.shape_.Size(loops));
  PF_ASSIGN_OR_RETURN(made.weights_, FloatBuffer::Allocate(size));
  // The gates are the columns of one matrix, whose rows are contiguous only here.
  PF_ASSIGN_OR_RETURN(const FloatBuffer joined,
                      FloatBuffer::Allocate(std::max<int64_t>(1, made.shape_.depth * made.shape_.columns)));
  float* row = joined.data();
  for (int64_t k = 0; k < input + state; ++k) {
    for (size_t gate = 0; gate < input_weights.size(); ++gate) {
      const float* weights = k < input ? input_weights[gate] + k : state_weights[gate] + (k - input);
      const int64_t step = k < input ? input : state;
      for (int64_t unit = 0; unit < units; ++unit) *row++ = weights[unit * step];
    }
  }
  permafrost::Pack(loops, made.shape_, joined.data(), made.shape_.columns, 1, made.weights_.data());
  return made;
}

void PackedRecurrence::MultiplyInput(int64_t rows, const float* x, float* sums) const {
  const InnerLoops& loops = BestInnerLoops();
  MultiplyPart(loops, rows, shape_, {0, input_}, x, input_, weights_.data(), sums, shape_.columns, 0,
               shape_.NumPanels(loops));
}

void PackedRecurrence::AddState(const float* state, float* sums) const {
  const InnerLoops& loops = BestInnerLoops();
  // A range that begins at 0 would replace the sums.
  if (input_ == 0) {
    return Multiply(loops, 1, shape_, state, shape_.depth, weights_.data(), sums, shape_.columns, 0,
                    shape_.NumPanels(loops));
  }
  MultiplyPart(loops, 1, shape_, {input_, shape_.depth}, state, shape_.depth - input_, weights_.data(), sums,
               shape_.columns, 0, shape_.NumPanels(loops));
}

absl::StatusOr<FloatLstm> FloatLstm::Make(const LstmSizes& sizes, WeightType weights, const LstmOperands& operands,
                                          const LstmScales& scales, const LstmOptions& options) {
  PF_RETURN_IF_ERROR(CheckLstm(sizes, operands));
  if (weights == WeightType::kInt8) {
    if (options.diagonal_recurrent) return absl::UnimplementedError("diagonal recurrent weights of int8");
    for (int gate = 0; gate < 4; ++gate) {
      if (operands.input_weights[gate] != nullptr) {
        PF_RETURN_IF_ERROR(CheckScale(scales.input_weights[gate], "input weights"));
        PF_RETURN_IF_ERROR(CheckScale(scales.recurrent_weights[gate], "recurrent weights"));
      }
      if (operands.peepholes[gate] != nullptr) PF_RETURN_IF_ERROR(CheckScale(scales.peepholes[gate], "peephole"));
    }
    if (operands.projection != nullptr) PF_RETURN_IF_ERROR(CheckScale(scales.projection, "projection weights"));
  }
  if (options.diagonal_recurrent && sizes.cell != sizes.output) {
    return absl::InvalidArgumentError("diagonal recurrent weights need as many cells as outputs");
  }
  FloatLstm made;
  made.sizes_ = sizes;
  made.weights_ = weights;
  made.scales_ = scales;
  made.options_ = options;
  made.is_coupled_ = operands.input_weights[kInputGate] == nullptr;
  made.scratch_size_ = 4 * AlignScratch(sizes.cell * 4) + AlignScratch(sizes.input) + AlignScratch(sizes.output) +
                       AlignScratch(sizes.cell);
  return made;
}

absl::Status FloatLstm::Pack(const LstmOperands& operands) {
  std::vector<const float*> input_weights, recurrent_weights;
  for (int gate = is_coupled_ ? 1 : 0; gate < 4; ++gate) {
    input_weights.push_back(static_cast<const float*>(operands.input_weights[gate]));
    recurrent_weights.push_back(static_cast<const float*>(operands.recurrent_weights[gate]));
  }
  PF_ASSIGN_OR_RETURN(
      gates_, PackedRecurrence::Make(sizes_.input, sizes_.output, sizes_.cell, input_weights, recurrent_weights));
  if (operands.projection != nullptr) {
    const float* projection = static_cast<const float*>(operands.projection);
    PF_ASSIGN_OR_RETURN(projection_, PackedRecurrence::Make(sizes_.cell, 0, sizes_.output, {&projection, 1}, {}));
  }
  const int64_t row_bytes = AlignScratch(gates_.columns() * 4);
  steps_at_once_ = std::clamp<int64_t>(kMostSumBytes / std::max<int64_t>(1, row_bytes * sizes_.batch), 1,
                                       std::max<int64_t>(1, sizes_.time));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes_.batch, steps_at_once_, row_bytes}));
  scratch_size_ = AlignScratch(gates_.columns() * 4 * sizes_.batch * steps_at_once_) + AlignScratch(sizes_.cell * 4);
  is_packed_ = true;
  return absl::OkStatus();
}

template <typename FinishSums, typename Project>
void FloatLstm::Step(const LstmOperands& operands, float* const (&gates)[4], float* state, float* cell,
                     FinishSums finish_sums, Project project) const {
  const int64_t cells = sizes_.cell;
  const auto compute_gate = [&](LstmGate gate) {
    float* sums = gates[gate];
    const auto* bias = static_cast<const float*>(operands.biases[gate]);
    const auto* norm = static_cast<const float*>(operands.layer_norms[gate]);
    finish_sums(gate, sums);
    if (operands.peepholes[gate] != nullptr) {
      for (int64_t c = 0; c < cells; ++c) {
        sums[c] += ElementAt(weights_, operands.peepholes[gate], scales_.peepholes[gate], c) * cell[c];
      }
    }
    if (norm != nullptr) {
      Normalize(cells, sums);
      for (int64_t c = 0; c < cells; ++c) sums[c] = sums[c] * norm[c] + bias[c];
    }
    ActivateAll(gate == kCellGate ? options_.activation : RecurrentActivation::kSigmoid, cells, sums);
  };
  if (!is_coupled_) compute_gate(kInputGate);
  compute_gate(kForgetGate);
  compute_gate(kCellGate);
  for (int64_t c = 0; c < cells; ++c) {
    const float forget = gates[kForgetGate][c];
    const float accept = is_coupled_ ? 1.0f - forget : gates[kInputGate][c];
    cell[c] = forget * cell[c] + accept * gates[kCellGate][c];
  }
  Clip(options_.cell_clip, cells, cell);
  compute_gate(kOutputGate);
  float* hidden = gates[kOutputGate];
  float* activated = gates[kCellGate];
  std::copy_n(cell, cells, activated);
  ActivateAll(options_.activation, cells, activated);
  for (int64_t c = 0; c < cells; ++c) hidden[c] *= activated[c];
  if (operands.projection != nullptr || projection_.columns() > 0) {
    project(hidden, state);
    if (const auto* bias = static_cast<const float*>(operands.projection_bias); bias != nullptr) {
      for (int64_t i = 0; i < sizes_.output; ++i) state[i] += bias[i];
    }
    Clip(options_.projection_clip, sizes_.output, state);
  } else {
    std::copy_n(hidden, cells, state);
  }
}

void FloatLstm::ComputePacked(const LstmOperands& operands, const float* input, float* output_state, float* cell_state,
                              char* scratch, float* output) const {
  const int64_t batch = sizes_.batch, time = sizes_.time, cells = sizes_.cell, columns = gates_.columns();
  auto* sums = reinterpret_cast<float*>(scratch);
  // Replaces the sums of an absent input gate, which nothing reads.
  auto* unused = reinterpret_cast<float*>(scratch + AlignScratch(columns * 4 * batch * steps_at_once_));
  for (int64_t first = 0; first < time; first += steps_at_once_) {
    const int64_t steps = std::min(steps_at_once_, time - first);
    if (sizes_.time_major) {
      gates_.MultiplyInput(steps * batch, input + first * batch * sizes_.input, sums);
    } else {
      for (int64_t b = 0; b < batch; ++b) {
        gates_.MultiplyInput(steps, input + (b * time + first) * sizes_.input, sums + b * steps * columns);
      }
    }
    ForEachStep(batch, steps, sizes_.time_major, [&](int64_t row, int64_t b) {
      float *state = output_state + b * sizes_.output, *cell = cell_state + b * cells;
      float* next = sums + row * columns;
      gates_.AddState(state, next);
      float* gates[4] = {unused};
      for (int gate = is_coupled_ ? 1 : 0; gate < 4; ++gate, next += cells) gates[gate] = next;
      const auto finish_sums = [&](LstmGate gate, float* values) {
        if (operands.layer_norms[gate] != nullptr) return;
        const auto* bias = static_cast<const float*>(operands.biases[gate]);
        for (int64_t c = 0; c < cells; ++c) values[c] += bias[c];
      };
      const auto project = [&](const float* hidden, float* to) { projection_.MultiplyInput(1, hidden, to); };
      Step(operands, gates, state, cell, finish_sums, project);
      const int64_t place = sizes_.time_major ? first * batch + row : b * time + first + row - b * steps;
      std::copy_n(state, sizes_.output, output + place * sizes_.output);
    });
  }
}

void FloatLstm::Compute(const LstmOperands& operands, const float* input, float* output_state, float* cell_state,
                        char* scratch, float* output) const {
  if (is_packed_) return ComputePacked(operands, input, output_state, cell_state, scratch, output);
  const int64_t cells = sizes_.cell;
  float* gates[4];
  for (int gate = 0; gate < 4; ++gate) gates[gate] = reinterpret_cast<float*>(scratch + gate * AlignScratch(cells * 4));
  auto* input_codes = reinterpret_cast<int8_t*>(scratch + 4 * AlignScratch(cells * 4));
  int8_t* state_codes = input_codes + AlignScratch(sizes_.input);
  int8_t* hidden_codes = state_codes + AlignScratch(sizes_.output);
  ForEachStep(sizes_.batch, sizes_.time, sizes_.time_major, [&](int64_t row, int64_t b) {
    float *state = output_state + b * sizes_.output, *cell = cell_state + b * cells;
    const Row x(weights_, options_.asymmetric, sizes_.input, input + row * sizes_.input, input_codes);
    const Row h(weights_, options_.asymmetric, sizes_.output, state, state_codes);
    const auto finish_sums = [&](LstmGate gate, float* sums) {
      const auto* bias = static_cast<const float*>(operands.biases[gate]);
      for (int64_t c = 0; c < cells; ++c) sums[c] = operands.layer_norms[gate] == nullptr ? bias[c] : 0.0f;
      x.AddProduct(operands.input_weights[gate], scales_.input_weights[gate], cells, sums);
      if (options_.diagonal_recurrent) {
        const auto* diagonal = static_cast<const float*>(operands.recurrent_weights[gate]);
        for (int64_t c = 0; c < cells; ++c) sums[c] += diagonal[c] * state[c];
      } else {
        h.AddProduct(operands.recurrent_weights[gate], scales_.recurrent_weights[gate], cells, sums);
      }
    };
    const auto project = [&](const float* hidden, float* to) {
      std::fill_n(to, sizes_.output, 0.0f);
      Row(weights_, options_.asymmetric, cells, hidden, hidden_codes)
          .AddProduct(operands.projection, scales_.projection, sizes_.output, to);
    };
    Step(operands, gates, state, cell, finish_sums, project);
    std::copy_n(state, sizes_.output, output + row * sizes_.output);
  });
}

absl::StatusOr<IntegerLstm> IntegerLstm::Make(const LstmSizes& sizes, const LstmOperands& operands,
                                              const LstmScales& scales, const LstmOptions& options, const Affine& input,
                                              const Affine& output_state, const Affine& cell_state,
                                              const std::array<Affine, 5>& intermediates) {
  PF_RETURN_IF_ERROR(CheckLstm(sizes, operands));
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(output_state, "output state"));
  PF_RETURN_IF_ERROR(CheckAffine(cell_state, "cell state"));
  PF_RETURN_IF_ERROR(CheckAffine(intermediates[4], "hidden state"));
  if (options.activation != RecurrentActivation::kTanh) {
    return absl::UnimplementedError("an integer LSTM with an activation other than TANH");
  }
  const double exponent = std::log2(static_cast<double>(cell_state.scale));
  const double rounded = std::round(exponent);
  // TANH takes the cell state with 15 + exponent integer bits.
  if (std::abs(exponent - rounded) > 1e-3 || rounded < -15 || rounded > -9) {
    return absl::InvalidArgumentError(
        absl::StrCat("cell state: scale ", cell_state.scale, ", expected a power of two from 2^-15 to 2^-9"));
  }
  IntegerLstm made;
  made.sizes_ = sizes;
  made.cell_shift_ = static_cast<int32_t>(rounded);
  const float cell_scale = std::ldexp(1.0f, made.cell_shift_);
  const auto multiplier_of = [](float factor, absl::string_view name) -> absl::StatusOr<FixedMultiplier> {
    if (!(factor > 0) || std::isinf(factor)) {
      return absl::InvalidArgumentError(absl::StrCat("the factor of the ", name, ", ", factor, ", is not positive"));
    }
    const FixedMultiplier multiplier = QuantizeMultiplier(static_cast<double>(factor));
    PF_RETURN_IF_ERROR(CheckMultiplier(multiplier, absl::StrCat("the factor of the ", name)));
    return multiplier;
  };
  const bool is_coupled = operands.input_weights[kInputGate] == nullptr;
  for (int i = is_coupled ? 1 : 0; i < 4; ++i) {
    Gate& gate = made.gates_[i];
    const bool has_norm = operands.layer_norms[i] != nullptr;
    // Sums of gates are in Q3.12, but with layer norm.
    float sum_scale = 1.0f / 4096;
    if (has_norm) {
      PF_RETURN_IF_ERROR(CheckScale(intermediates[i].scale, "gate sum"));
      sum_scale = intermediates[i].scale;
    }
    PF_ASSIGN_OR_RETURN(gate.input, multiplier_of(scales.input_weights[i] * input.scale / sum_scale, "input weights"));
    PF_ASSIGN_OR_RETURN(gate.recurrent, multiplier_of(scales.recurrent_weights[i] * output_state.scale / sum_scale,
                                                      "recurrent weights"));
    if (operands.peepholes[i] != nullptr) {
      if (sizes.output > sizes.cell) {
        return absl::UnimplementedError("an integer LSTM with peepholes and more outputs than cells");
      }
      PF_ASSIGN_OR_RETURN(gate.peephole, multiplier_of(cell_scale * scales.peepholes[i] / sum_scale, "peephole"));
    }
    if (has_norm) {
      PF_ASSIGN_OR_RETURN(gate.layer_norm, multiplier_of(scales.layer_norms[i], "layer norm coefficients"));
      // The normalised sum has 12 bits more, as the gate's Q3.12.
      gate.layer_norm.shift += 12;
      PF_RETURN_IF_ERROR(CheckMultiplier(gate.layer_norm, "the factor of the layer norm coefficients"));
      gate.variance_limit = std::max(1, static_cast<int32_t>(std::min(10000.0f * scales.layer_norms[i], 1e9f)));
    }
    const auto fold = [](const void* weights, int64_t rows, int64_t depth, int32_t zero, const int32_t* bias,
                         std::vector<int32_t>* offsets) {
      for (int64_t r = 0; r < rows; ++r) {
        const int32_t sum = Sum(depth, static_cast<const int8_t*>(weights) + r * depth);
        offsets->push_back(WrapSubtract(bias == nullptr ? 0 : bias[r], WrapMultiply(zero, sum)));
      }
    };
    const auto* bias = static_cast<const int32_t*>(operands.biases[i]);
    fold(operands.input_weights[i], sizes.cell, sizes.input, input.zero_point, has_norm ? nullptr : bias,
         &gate.input_offsets);
    fold(operands.recurrent_weights[i], sizes.cell, sizes.output, output_state.zero_point, nullptr,
         &gate.recurrent_offsets);
  }
  made.hidden_zero_ = intermediates[4].zero_point;
  made.output_zero_ = output_state.zero_point;
  // Products of the output gate and TANH have 30 fraction bits.
  PF_ASSIGN_OR_RETURN(
      made.hidden_,
      multiplier_of(
          static_cast<float>(std::ldexp(1.0, -15) / static_cast<double>(intermediates[4].scale) * std::ldexp(1.0, -15)),
          "hidden state"));
  if (operands.projection != nullptr) {
    PF_RETURN_IF_ERROR(CheckScale(scales.projection, "projection weights"));
    PF_ASSIGN_OR_RETURN(made.projection_,
                        multiplier_of(scales.projection * intermediates[4].scale / output_state.scale, "projection"));
    const auto* bias = static_cast<const int32_t*>(operands.projection_bias);
    for (int64_t i = 0; i < sizes.output; ++i) {
      const int32_t sum = Sum(sizes.cell, static_cast<const int8_t*>(operands.projection) + i * sizes.cell);
      made.projection_offsets_.push_back(
          WrapSubtract(bias == nullptr ? 0 : bias[i], WrapMultiply(made.hidden_zero_, sum)));
    }
    if (options.projection_clip > 0) {
      made.projection_clip_ = static_cast<int8_t>(std::min(options.projection_clip / output_state.scale, 127.0f));
    }
  }
  if (options.cell_clip > 0) {
    made.cell_clip_ = static_cast<int16_t>(std::min(options.cell_clip / cell_state.scale, 32767.0f));
  }
  made.scratch_size_ = 4 * AlignScratch(sizes.cell * 2) + AlignScratch(sizes.cell);
  return made;
}

// Normalises the sums of a gate to mean 0 and variance 1 with 10 fraction bits, and applies coefficients and bias.
void IntegerLstm::NormalizeGate(const Gate& gate, const int16_t* coefficients, const int32_t* bias,
                                int16_t* sums) const {
  constexpr int64_t kUnit = 1 << 10, kSquare = kUnit * kUnit;
  const int64_t count = sizes_.cell;
  int64_t sum = 0, squares = 0;
  for (int64_t c = 0; c < count; ++c) {
    sum += sums[c];
    squares += int64_t{sums[c]} * sums[c];
  }
  const auto mean = static_cast<int32_t>(sum * kUnit / count);
  const auto variance = static_cast<int32_t>((squares * (kSquare / count) - int64_t{mean} * mean) / kSquare);
  const FixedMultiplier inverse = InverseSquareRoot(variance < 1 ? gate.variance_limit : variance);
  for (int64_t c = 0; c < count; ++c) {
    const int32_t normal = MultiplyTwice(static_cast<int32_t>(kUnit * sums[c] - mean), inverse);
    const int64_t product = int64_t{WrapAdd(WrapMultiply(normal, coefficients[c]), bias[c])};
    const auto code = static_cast<int32_t>((product + (product > 0 ? kUnit / 2 : -kUnit / 2)) / kUnit);
    sums[c] = Saturate16(MultiplyTwice(code, gate.layer_norm));
  }
}

void IntegerLstm::Compute(const LstmOperands& operands, const int8_t* input, int8_t* output_state, int16_t* cell_state,
                          char* scratch, int8_t* output) const {
  const int64_t cells = sizes_.cell;
  int16_t* sums[4];
  for (int gate = 0; gate < 4; ++gate)
    sums[gate] = reinterpret_cast<int16_t*>(scratch + gate * AlignScratch(cells * 2));
  auto* hidden = reinterpret_cast<int8_t*>(scratch + 4 * AlignScratch(cells * 2));
  const bool is_coupled = operands.input_weights[kInputGate] == nullptr;
  ForEachStep(sizes_.batch, sizes_.time, sizes_.time_major, [&](int64_t row, int64_t b) {
    const int8_t* x = input + row * sizes_.input;
    int8_t* state = output_state + b * sizes_.output;
    int16_t* cell = cell_state + b * cells;
    const auto compute_gate = [&](LstmGate number) {
      const Gate& gate = gates_[number];
      int16_t* to = sums[number];
      const auto* input_weights = static_cast<const int8_t*>(operands.input_weights[number]);
      const auto* recurrent_weights = static_cast<const int8_t*>(operands.recurrent_weights[number]);
      const auto* peephole = static_cast<const int16_t*>(operands.peepholes[number]);
      for (int64_t c = 0; c < cells; ++c) {
        const int32_t from_input =
            WrapAdd(gate.input_offsets[c], IntegerDot(sizes_.input, input_weights + c * sizes_.input, x));
        const int32_t from_state =
            WrapAdd(gate.recurrent_offsets[c], IntegerDot(sizes_.output, recurrent_weights + c * sizes_.output, state));
        to[c] = Saturate16(MultiplyTwice(from_input, gate.input));
        to[c] = Saturate16(int64_t{MultiplyTwice(from_state, gate.recurrent)} + to[c]);
        // The reference kernel takes peepholes as vectors of outputs: in a step, the elements of all cell states in
        // their order are multiplied with them over and over. Without a projection both sizes are equal.
        const int64_t element = (sizes_.time_major ? b * cells : 0) + c;
        if (peephole != nullptr && element < (sizes_.time_major ? sizes_.batch : 1) * sizes_.output) {
          const int32_t product = peephole[element % sizes_.output] * cell[c];
          to[c] = Saturate16(int64_t{MultiplyTwice(product, gate.peephole)} + to[c]);
        }
      }
      if (operands.layer_norms[number] != nullptr && cells > 0) {
        NormalizeGate(gate, static_cast<const int16_t*>(operands.layer_norms[number]),
                      static_cast<const int32_t*>(operands.biases[number]), to);
      }
      for (int64_t c = 0; c < cells; ++c) to[c] = number == kCellGate ? TanhOf(to[c], 3) : LogisticOf(to[c]);
    };
    if (!is_coupled) compute_gate(kInputGate);
    compute_gate(kForgetGate);
    compute_gate(kCellGate);
    for (int64_t c = 0; c < cells; ++c) {
      const int16_t forget = sums[kForgetGate][c];
      const auto accept = static_cast<int16_t>(is_coupled ? 32767 - forget : sums[kInputGate][c]);
      const auto kept = static_cast<int16_t>(RoundingShiftRight(forget * cell[c], 15));
      const auto added = static_cast<int16_t>(RoundingShiftRight(accept * sums[kCellGate][c], 30 + cell_shift_));
      cell[c] = Saturate16(int64_t{kept} + added);
      if (cell_clip_ > 0) cell[c] = std::clamp<int16_t>(cell[c], static_cast<int16_t>(-cell_clip_), cell_clip_);
    }
    compute_gate(kOutputGate);
    for (int64_t c = 0; c < cells; ++c) {
      const int32_t product = sums[kOutputGate][c] * TanhOf(cell[c], 15 + cell_shift_);
      hidden[c] = Saturate8(int64_t{MultiplyTwice(product, hidden_)} + hidden_zero_);
    }
    if (operands.projection != nullptr) {
      const auto* weights = static_cast<const int8_t*>(operands.projection);
      for (int64_t i = 0; i < sizes_.output; ++i) {
        const int32_t sum = WrapAdd(projection_offsets_[i], IntegerDot(cells, weights + i * cells, hidden));
        state[i] = Saturate8(int64_t{MultiplyTwice(sum, projection_)} + output_zero_);
        if (projection_clip_ > 0) {
          state[i] = std::clamp<int8_t>(state[i], static_cast<int8_t>(-projection_clip_), projection_clip_);
        }
      }
    } else {
      std::copy_n(hidden, cells, state);
    }
    std::copy_n(state, sizes_.output, output + row * sizes_.output);
  });
}

absl::StatusOr<FloatRnn> FloatRnn::Make(const RnnSizes& sizes, WeightType weights, float input_scale,
                                        float recurrent_scale, bool asymmetric, RecurrentActivation activation) {
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.time, sizes.input}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.time, sizes.units}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.units, sizes.input}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.units, sizes.units}));
  if (weights == WeightType::kInt8) {
    PF_RETURN_IF_ERROR(CheckScale(input_scale, "input weights"));
    PF_RETURN_IF_ERROR(CheckScale(recurrent_scale, "recurrent weights"));
  }
  FloatRnn made;
  made.sizes_ = sizes;
  made.weights_ = weights;
  made.input_scale_ = input_scale;
  made.recurrent_scale_ = recurrent_scale;
  made.asymmetric_ = asymmetric;
  made.activation_ = activation;
  made.scratch_size_ = AlignScratch(sizes.input) + AlignScratch(sizes.units);
  return made;
}

absl::Status FloatRnn::Pack(const float* weights, const float* recurrent) {
  PF_ASSIGN_OR_RETURN(packed_,
                      PackedRecurrence::Make(sizes_.input, sizes_.units, sizes_.units, {&weights, 1}, {&recurrent, 1}));
  is_packed_ = true;
  return absl::OkStatus();
}

void FloatRnn::Compute(const float* input, const void* weights, const void* recurrent, const float* bias, float* state,
                       char* scratch, float* output) const {
  if (is_packed_) {
    const int64_t units = sizes_.units;
    // The sums are computed in place of the outputs.
    packed_.MultiplyInput(sizes_.batch * sizes_.time, input, output);
    return ForEachStep(sizes_.batch, sizes_.time, sizes_.time_major, [&](int64_t row, int64_t b) {
      float *h = state + b * units, *y = output + row * units;
      packed_.AddState(h, y);
      for (int64_t u = 0; u < units && bias != nullptr; ++u) y[u] += bias[u];
      ActivateAll(activation_, units, y);
      std::copy_n(y, units, h);
    });
  }
  auto* input_codes = reinterpret_cast<int8_t*>(scratch);
  int8_t* state_codes = input_codes + AlignScratch(sizes_.input);
  const int64_t units = sizes_.units;
  ForEachStep(sizes_.batch, sizes_.time, sizes_.time_major, [&](int64_t row, int64_t b) {
    float *h = state + b * units, *y = output + row * units;
    for (int64_t u = 0; u < units; ++u) y[u] = bias == nullptr ? 0.0f : bias[u];
    Row(weights_, asymmetric_, sizes_.input, input + row * sizes_.input, input_codes)
        .AddProduct(weights, input_scale_, units, y);
    Row(weights_, asymmetric_, units, h, state_codes).AddProduct(recurrent, recurrent_scale_, units, y);
    for (int64_t u = 0; u < units; ++u) h[u] = y[u] = Activate(activation_, y[u]);
  });
}

namespace {

absl::Status CheckSvdf(const SvdfSizes& sizes) {
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.units, sizes.rank, sizes.memory}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.units, sizes.rank, sizes.input}));
  PF_RETURN_IF_ERROR(CheckNumElements({sizes.batch, sizes.input}));
  if (sizes.memory < 1 || sizes.rank < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SVDF has rank ", sizes.rank, " and memory ", sizes.memory, ", expected 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FloatSvdf> FloatSvdf::Make(const SvdfSizes& sizes, WeightType weights, float feature_scale,
                                          float time_scale, bool asymmetric, RecurrentActivation activation) {
  PF_RETURN_IF_ERROR(CheckSvdf(sizes));
  if (weights == WeightType::kInt8) {
    PF_RETURN_IF_ERROR(CheckScale(feature_scale, "feature weights"));
    PF_RETURN_IF_ERROR(CheckScale(time_scale, "time weights"));
  }
  FloatSvdf made;
  made.sizes_ = sizes;
  made.weights_ = weights;
  made.feature_scale_ = feature_scale;
  made.time_scale_ = time_scale;
  made.asymmetric_ = asymmetric;
  made.activation_ = activation;
  made.scratch_size_ = AlignScratch(sizes.input) + AlignScratch(sizes.filters() * 4);
  return made;
}

void FloatSvdf::Compute(const float* input, const void* feature, const void* time, const float* bias, float* state,
                        char* scratch, float* output) const {
  auto* codes = reinterpret_cast<int8_t*>(scratch);
  auto* newest = reinterpret_cast<float*>(scratch + AlignScratch(sizes_.input));
  const int64_t filters = sizes_.filters(), memory = sizes_.memory;
  for (int64_t b = 0; b < sizes_.batch; ++b) {
    std::fill_n(newest, filters, 0.0f);
    Row(weights_, asymmetric_, sizes_.input, input + b * sizes_.input, codes)
        .AddProduct(feature, feature_scale_, filters, newest);
    for (int64_t u = 0; u < sizes_.units; ++u) {
      float sum = bias == nullptr ? 0.0f : bias[u];
      for (int64_t f = u * sizes_.rank; f < (u + 1) * sizes_.rank; ++f) {
        float* past = state + (b * filters + f) * memory;
        std::copy(past + 1, past + memory, past);
        past[memory - 1] = newest[f];
        for (int64_t m = 0; m < memory; ++m) sum += ElementAt(weights_, time, time_scale_, f * memory + m) * past[m];
      }
      output[b * sizes_.units + u] = Activate(activation_, sum);
    }
  }
}

absl::StatusOr<IntegerSvdf> IntegerSvdf::Make(const SvdfSizes& sizes, const Affine& input, float feature_scale,
                                              float time_scale, const Affine& state, const Affine& output) {
  PF_RETURN_IF_ERROR(CheckSvdf(sizes));
  PF_RETURN_IF_ERROR(CheckAffine(input, "input"));
  PF_RETURN_IF_ERROR(CheckAffine(state, "state"));
  PF_RETURN_IF_ERROR(CheckAffine(output, "output"));
  PF_RETURN_IF_ERROR(CheckScale(feature_scale, "feature weights"));
  PF_RETURN_IF_ERROR(CheckScale(time_scale, "time weights"));
  IntegerSvdf made;
  made.sizes_ = sizes;
  const float first = input.scale * feature_scale / state.scale, second = state.scale * time_scale / output.scale;
  if (std::isinf(first) || std::isinf(second)) {
    return absl::InvalidArgumentError("the scales of SVDF give an infinite factor");
  }
  made.feature_ = QuantizeMultiplier(static_cast<double>(first));
  made.time_ = QuantizeMultiplier(static_cast<double>(second));
  PF_RETURN_IF_ERROR(CheckMultiplier(made.feature_, "input scale * feature scale / state scale"));
  PF_RETURN_IF_ERROR(CheckMultiplier(made.time_, "state scale * time scale / output scale"));
  made.input_zero_ = input.zero_point;
  made.output_zero_ = output.zero_point;
  return made;
}

void IntegerSvdf::Compute(const int8_t* input, const int8_t* feature, const int16_t* time, const int32_t* bias,
                          int16_t* state, int8_t* output) const {
  const int64_t filters = sizes_.filters(), memory = sizes_.memory;
  for (int64_t b = 0; b < sizes_.batch; ++b) {
    const int8_t* x = input + b * sizes_.input;
    for (int64_t u = 0; u < sizes_.units; ++u) {
      int32_t sum = bias == nullptr ? 0 : bias[u];
      for (int64_t f = u * sizes_.rank; f < (u + 1) * sizes_.rank; ++f) {
        const int8_t* weights = feature + f * sizes_.input;
        const int32_t newest =
            WrapSubtract(IntegerDot(sizes_.input, weights, x), WrapMultiply(input_zero_, Sum(sizes_.input, weights)));
        int16_t* past = state + (b * filters + f) * memory;
        std::copy(past + 1, past + memory, past);
        past[memory - 1] = Saturate16(MultiplyTwice(newest, feature_));
        sum = WrapAdd(sum, IntegerDot(memory, time + f * memory, past));
      }
      output[b * sizes_.units + u] = Saturate8(int64_t{MultiplyTwice(sum, time_)} + output_zero_);
    }
  }
}

}  // namespace permafrost
