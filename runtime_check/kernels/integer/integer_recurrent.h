// Recurrent operators of TensorFlow Lite: UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM, UNIDIRECTIONAL_SEQUENCE_RNN and RNN,
// SVDF. Each has a float form, a hybrid one (float values, int8 weights) and an integer one (not RNN).
//
// States (variable tensors) are read and written: the caller keeps them between calls.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RECURRENT_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RECURRENT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/integer/integer_arithmetic.h"

namespace permafrost {

enum class RecurrentActivation : uint8_t { kNone, kRelu, kReluN1To1, kRelu6, kTanh, kSignBit, kSigmoid };

// The form of an operand with weights.
enum class WeightType : uint8_t { kFloat, kInt8 };

// Gates, in the order of TensorFlow Lite's operands.
enum LstmGate : uint8_t { kInputGate, kForgetGate, kCellGate, kOutputGate };

struct LstmSizes {
  int64_t batch = 0, time = 0, input = 0, cell = 0, output = 0;
  bool time_major = false;  // [time, batch, input] instead of [batch, time, input].
};

// Data of the operands; null for an absent one. Weights are float or int8; peepholes float, int8 (hybrid) or int16;
// biases float or int32; layer norm coefficients float or int16.
struct LstmOperands {
  const void* input_weights[4] = {};      // [cell, input]; the input gate's is null where gates are coupled.
  const void* recurrent_weights[4] = {};  // [cell, output]; [cell] where they are diagonal.
  const void* peepholes[4] = {};          // [cell]; none for the cell gate.
  const void* biases[4] = {};             // [cell]
  const void* layer_norms[4] = {};        // [cell]
  const void* projection = nullptr;       // [output, cell]
  const void* projection_bias = nullptr;  // [output]
};

// Weight scales of hybrid and integer forms, by gate.
struct LstmScales {
  float input_weights[4] = {}, recurrent_weights[4] = {}, peepholes[4] = {}, layer_norms[4] = {};
  float projection = 0;
};

struct LstmOptions {
  RecurrentActivation activation = RecurrentActivation::kTanh;
  float cell_clip = 0, projection_clip = 0;  // 0: none.
  bool asymmetric = false;                   // Hybrid: quantisation of inputs.
  bool diagonal_recurrent = false;           // Float only.
};

// Float weights of a recurrent operator, packed for products of rows (gemm.h): the rows of the input's weights, then
// those of the state's, with the columns of all gates beside each other. The products of the input are computed for
// many steps at once.
class PackedRecurrence {
 public:
  // `input_weights[i]` is [units, input], `state_weights[i]` is [units, state].
  static absl::StatusOr<PackedRecurrence> Make(int64_t input, int64_t state, int64_t units,
                                               absl::Span<const float* const> input_weights,
                                               absl::Span<const float* const> state_weights);
  int64_t columns() const { return shape_.columns; }
  // sums[rows][columns()] = x[rows][input] * weights.
  void MultiplyInput(int64_t rows, const float* x, float* sums) const;
  // sums[columns()] += state * weights.
  void AddState(const float* state, float* sums) const;

 private:
  int64_t input_ = 0;
  PackedShape shape_;
  FloatBuffer weights_;
};

// The float and the hybrid form.
class FloatLstm {
 public:
  static absl::StatusOr<FloatLstm> Make(const LstmSizes& sizes, WeightType weights, const LstmOperands& operands,
                                        const LstmScales& scales, const LstmOptions& options);
  // Copies the float weights to packed ones. Compute then reads no weights of inputs, states and projections, and needs
  // other scratch memory. ResourceExhausted if memory is insufficient. REQUIRES: float weights that are not diagonal.
  absl::Status Pack(const LstmOperands& operands);
  int64_t scratch_size() const { return scratch_size_; }
  // `output_state` is [batch, output], `cell_state` [batch, cell]; `output` as the input, with `sizes.output` values.
  void Compute(const LstmOperands& operands, const float* input, float* output_state, float* cell_state, char* scratch,
               float* output) const;

 private:
  // Computes a step from the gates' sums of products. `finish_sums(gate, sums)` completes the sums of a gate, with its
  // bias unless there is a layer norm; `project(hidden, state)` multiplies with the projection.
  template <typename FinishSums, typename Project>
  void Step(const LstmOperands& operands, float* const (&gates)[4], float* state, float* cell, FinishSums finish_sums,
            Project project) const;
  void ComputePacked(const LstmOperands& operands, const float* input, float* output_state, float* cell_state,
                     char* scratch, float* output) const;

  LstmSizes sizes_;
  WeightType weights_ = WeightType::kFloat;
  LstmScales scales_;
  LstmOptions options_;
  bool is_coupled_ = false;  // The input gate is 1 less the forget gate.
  bool is_packed_ = false;
  PackedRecurrence gates_, projection_;
  int64_t steps_at_once_ = 1;  // Steps for which the products of the input are computed together.
  int64_t scratch_size_ = 0;
};

// int8 input, output and weights, int16 cell state.
class IntegerLstm {
 public:
  // The cell state's scale is a power of two. `intermediates` are the scales of the operator's five intermediate
  // tensors: gate sums (layer norm only), then the hidden state before projection with its zero point.
  static absl::StatusOr<IntegerLstm> Make(const LstmSizes& sizes, const LstmOperands& operands,
                                          const LstmScales& scales, const LstmOptions& options, const Affine& input,
                                          const Affine& output_state, const Affine& cell_state,
                                          const std::array<Affine, 5>& intermediates);
  int64_t scratch_size() const { return scratch_size_; }
  void Compute(const LstmOperands& operands, const int8_t* input, int8_t* output_state, int16_t* cell_state,
               char* scratch, int8_t* output) const;

 private:
  struct Gate {
    FixedMultiplier input, recurrent, peephole, layer_norm;
    int32_t variance_limit = 1;                             // In place of a variance below 1.
    std::vector<int32_t> input_offsets, recurrent_offsets;  // Bias and zero points folded.
  };
  void NormalizeGate(const Gate& gate, const int16_t* coefficients, const int32_t* bias, int16_t* sums) const;

  LstmSizes sizes_;
  std::array<Gate, 4> gates_;
  FixedMultiplier hidden_, projection_;
  std::vector<int32_t> projection_offsets_;
  int32_t hidden_zero_ = 0, output_zero_ = 0;
  int32_t cell_shift_ = 0;  // The cell's scale is 2^cell_shift_.
  int16_t cell_clip_ = 0;
  int8_t projection_clip_ = 0;
  int64_t scratch_size_ = 0;
};

struct RnnSizes {
  int64_t batch = 0, time = 0, input = 0, units = 0;
  bool time_major = false;
};

// RNN (time 1) and UNIDIRECTIONAL_SEQUENCE_RNN: h = activation(input * weights + h * recurrent weights + bias).
class FloatRnn {
 public:
  static absl::StatusOr<FloatRnn> Make(const RnnSizes& sizes, WeightType weights, float input_scale,
                                       float recurrent_scale, bool asymmetric, RecurrentActivation activation);
  // Copies the float weights to packed ones, which Compute then reads instead.
  absl::Status Pack(const float* weights, const float* recurrent);
  int64_t scratch_size() const { return scratch_size_; }
  // Weights are [units, input] and [units, units], float or int8; `state` is [batch, units].
  void Compute(const float* input, const void* weights, const void* recurrent, const float* bias, float* state,
               char* scratch, float* output) const;

 private:
  RnnSizes sizes_;
  WeightType weights_ = WeightType::kFloat;
  float input_scale_ = 1, recurrent_scale_ = 1;
  bool asymmetric_ = false;
  RecurrentActivation activation_ = RecurrentActivation::kNone;
  bool is_packed_ = false;
  PackedRecurrence packed_;
  int64_t scratch_size_ = 0;
};

struct SvdfSizes {
  int64_t batch = 0, input = 0, units = 0, rank = 0, memory = 0;
  int64_t filters() const { return units * rank; }
};

// SVDF in float, and hybrid: weights_feature [filters, input] and weights_time [filters, memory] are float, or both
// int8.
class FloatSvdf {
 public:
  static absl::StatusOr<FloatSvdf> Make(const SvdfSizes& sizes, WeightType weights, float feature_scale,
                                        float time_scale, bool asymmetric, RecurrentActivation activation);
  int64_t scratch_size() const { return scratch_size_; }
  // `state` is [batch, filters, memory]; `bias` [units] or null.
  void Compute(const float* input, const void* feature, const void* time, const float* bias, float* state,
               char* scratch, float* output) const;

 private:
  SvdfSizes sizes_;
  WeightType weights_ = WeightType::kFloat;
  float feature_scale_ = 1, time_scale_ = 1;
  bool asymmetric_ = false;
  RecurrentActivation activation_ = RecurrentActivation::kNone;
  int64_t scratch_size_ = 0;
};

// SVDF on codes: int8 input and feature weights, int16 state and time weights, int32 bias, int8 output. The output's
// range is the only activation, as in LiteRT.
class IntegerSvdf {
 public:
  static absl::StatusOr<IntegerSvdf> Make(const SvdfSizes& sizes, const Affine& input, float feature_scale,
                                          float time_scale, const Affine& state, const Affine& output);
  void Compute(const int8_t* input, const int8_t* feature, const int16_t* time, const int32_t* bias, int16_t* state,
               int8_t* output) const;

 private:
  SvdfSizes sizes_;
  FixedMultiplier feature_, time_;
  int32_t input_zero_ = 0, output_zero_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_INTEGER_INTEGER_RECURRENT_H_
