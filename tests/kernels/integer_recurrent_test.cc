// Computes the recorded cases of recurrent operators and compares the outputs with those of LiteRT's reference kernels:
// codes bit for bit, floats to 1e-5. A hybrid step quantises the previous one's output, so a difference in the last bit
// can become one of a code, 1/127 of the largest value times a weight; the recorded cases have none.
#include "runtime_check/kernels/integer/integer_recurrent.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "tests/kernels/integer_cases.h"

namespace permafrost {
namespace {

using Memory = std::vector<int64_t>;  // Aligned to 8 bytes.
Memory Allocate(int64_t bytes) { return Memory(bytes / 8 + 1); }
template <typename T>
T* DataOf(Memory& memory) {
  return reinterpret_cast<T*>(memory.data());
}

const void* DataOf(const IntegerCase& recorded, size_t i) {
  return recorded.has_input(i) ? recorded.inputs[i].bytes.data() : nullptr;
}
float ScaleOf(const IntegerCase& recorded, size_t i) {
  return recorded.has_input(i) ? recorded.inputs[i].affine().scale : 0.0f;
}

RecurrentActivation ActivationOf(const IntegerCase& recorded) {
  return static_cast<RecurrentActivation>(static_cast<int>(recorded.option("fusedActivationFunction")));
}

WeightType WeightTypeOf(const IntegerOperand& weights) {
  return weights.type == "int8" ? WeightType::kInt8 : WeightType::kFloat;
}

absl::Status Lstm(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  LstmSizes sizes;
  sizes.time_major = recorded.option("timeMajor") != 0;
  sizes.batch = x.dim(sizes.time_major ? 1 : 0);
  sizes.time = x.dim(sizes.time_major ? 0 : 1);
  sizes.input = x.dim(2);
  sizes.cell = recorded.inputs[2].dim(0);
  sizes.output = recorded.output.dim(2);
  LstmOperands operands;
  LstmScales scales;
  for (int gate = 0; gate < 4; ++gate) {
    operands.input_weights[gate] = DataOf(recorded, 1 + gate);
    operands.recurrent_weights[gate] = DataOf(recorded, 5 + gate);
    operands.biases[gate] = DataOf(recorded, 12 + gate);
    operands.layer_norms[gate] = DataOf(recorded, 20 + gate);
    scales.input_weights[gate] = ScaleOf(recorded, 1 + gate);
    scales.recurrent_weights[gate] = ScaleOf(recorded, 5 + gate);
    scales.layer_norms[gate] = ScaleOf(recorded, 20 + gate);
  }
  constexpr LstmGate kPeepholes[] = {kInputGate, kForgetGate, kOutputGate};
  for (int i = 0; i < 3; ++i) {
    operands.peepholes[kPeepholes[i]] = DataOf(recorded, 9 + i);
    scales.peepholes[kPeepholes[i]] = ScaleOf(recorded, 9 + i);
  }
  operands.projection = DataOf(recorded, 16);
  operands.projection_bias = DataOf(recorded, 17);
  scales.projection = ScaleOf(recorded, 16);
  LstmOptions options;
  options.activation = ActivationOf(recorded);
  options.cell_clip = static_cast<float>(recorded.option("cellClip"));
  options.projection_clip = static_cast<float>(recorded.option("projClip"));
  options.asymmetric = recorded.option("asymmetricQuantizeInputs") != 0;
  Memory output_state = Allocate(sizes.batch * sizes.output * 4), cell_state = Allocate(sizes.batch * sizes.cell * 4);
  if (x.type == "float32") {
    const WeightType weights = WeightTypeOf(recorded.inputs[2]);
    PF_ASSIGN_OR_RETURN(FloatLstm made, FloatLstm::Make(sizes, weights, operands, scales, options));
    Memory scratch = Allocate(made.scratch_size());
    auto* values = reinterpret_cast<float*>(output);
    made.Compute(operands, x.data<float>(), DataOf<float>(output_state), DataOf<float>(cell_state),
                 DataOf<char>(scratch), values);
    if (weights != WeightType::kFloat) return absl::OkStatus();
    const int64_t count = sizes.batch * sizes.time * sizes.output;
    const std::vector<float> unpacked(values, values + count);
    const Memory state = output_state, cells = cell_state;
    PF_RETURN_IF_ERROR(made.Pack(operands));
    for (int gate = 0; gate < 4; ++gate) operands.input_weights[gate] = operands.recurrent_weights[gate] = nullptr;
    operands.projection = nullptr;
    scratch = Allocate(made.scratch_size());
    std::memset(output_state.data(), 0, output_state.size() * 8);
    std::memset(cell_state.data(), 0, cell_state.size() * 8);
    made.Compute(operands, x.data<float>(), DataOf<float>(output_state), DataOf<float>(cell_state),
                 DataOf<char>(scratch), values);
    for (int64_t i = 0; i < count; ++i) EXPECT_NEAR(values[i], unpacked[i], 1e-5) << i;
    for (int64_t i = 0; i < sizes.batch * sizes.output; ++i) {
      EXPECT_NEAR(DataOf<float>(output_state)[i], reinterpret_cast<const float*>(state.data())[i], 1e-5) << i;
    }
    for (int64_t i = 0; i < sizes.batch * sizes.cell; ++i) {
      EXPECT_NEAR(DataOf<float>(cell_state)[i], reinterpret_cast<const float*>(cells.data())[i], 1e-5) << i;
    }
    return absl::OkStatus();
  }
  std::array<Affine, 5> intermediates;
  for (int i = 0; i < 5; ++i) intermediates[i] = recorded.intermediates[i].affine();
  PF_ASSIGN_OR_RETURN(const IntegerLstm made,
                      IntegerLstm::Make(sizes, operands, scales, options, x.affine(), recorded.inputs[18].affine(),
                                        recorded.inputs[19].affine(), intermediates));
  Memory scratch = Allocate(made.scratch_size());
  // Variables start with the code of 0, as LiteRT resets them.
  std::memset(output_state.data(), recorded.inputs[18].affine().zero_point, output_state.size() * 8);
  made.Compute(operands, x.data<int8_t>(), DataOf<int8_t>(output_state), DataOf<int16_t>(cell_state),
               DataOf<char>(scratch), reinterpret_cast<int8_t*>(output));
  return absl::OkStatus();
}

absl::Status Rnn(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  RnnSizes sizes;
  sizes.time_major = recorded.option("timeMajor") != 0;
  sizes.batch = x.dim(sizes.time_major ? 1 : 0);
  sizes.time = x.dim(sizes.time_major ? 0 : 1);
  sizes.input = x.dim(2);
  sizes.units = recorded.inputs[1].dim(0);
  const WeightType weights = WeightTypeOf(recorded.inputs[1]);
  PF_ASSIGN_OR_RETURN(FloatRnn made,
                      FloatRnn::Make(sizes, weights, ScaleOf(recorded, 1), ScaleOf(recorded, 2),
                                     recorded.option("asymmetricQuantizeInputs") != 0, ActivationOf(recorded)));
  Memory scratch = Allocate(made.scratch_size()), state = Allocate(sizes.batch * sizes.units * 4);
  const auto* bias = static_cast<const float*>(DataOf(recorded, 3));
  auto* values = reinterpret_cast<float*>(output);
  made.Compute(x.data<float>(), DataOf(recorded, 1), DataOf(recorded, 2), bias, DataOf<float>(state),
               DataOf<char>(scratch), values);
  if (weights != WeightType::kFloat) return absl::OkStatus();
  const std::vector<float> unpacked(values, values + sizes.batch * sizes.time * sizes.units);
  PF_RETURN_IF_ERROR(
      made.Pack(static_cast<const float*>(DataOf(recorded, 1)), static_cast<const float*>(DataOf(recorded, 2))));
  std::memset(state.data(), 0, state.size() * 8);
  made.Compute(x.data<float>(), nullptr, nullptr, bias, DataOf<float>(state), DataOf<char>(scratch), values);
  for (size_t i = 0; i < unpacked.size(); ++i) EXPECT_NEAR(values[i], unpacked[i], 1e-5) << i;
  return absl::OkStatus();
}

absl::Status Svdf(const IntegerCase& recorded, char* output) {
  const IntegerOperand& x = recorded.inputs[0];
  SvdfSizes sizes;
  sizes.batch = x.dim(0);
  sizes.input = x.dim(1);
  sizes.rank = static_cast<int64_t>(recorded.option("rank"));
  sizes.units = recorded.output.dim(1);
  sizes.memory = recorded.inputs[2].dim(1);
  Memory state = Allocate(sizes.batch * sizes.filters() * sizes.memory * 4);
  if (x.type == "int8") {
    PF_ASSIGN_OR_RETURN(const IntegerSvdf made,
                        IntegerSvdf::Make(sizes, x.affine(), ScaleOf(recorded, 1), ScaleOf(recorded, 2),
                                          recorded.inputs[4].affine(), recorded.output.affine()));
    made.Compute(x.data<int8_t>(), recorded.inputs[1].data<int8_t>(), recorded.inputs[2].data<int16_t>(),
                 static_cast<const int32_t*>(DataOf(recorded, 3)), DataOf<int16_t>(state),
                 reinterpret_cast<int8_t*>(output));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(
      const FloatSvdf made,
      FloatSvdf::Make(sizes, WeightTypeOf(recorded.inputs[1]), ScaleOf(recorded, 1), ScaleOf(recorded, 2),
                      recorded.option("asymmetricQuantizeInputs") != 0, ActivationOf(recorded)));
  Memory scratch = Allocate(made.scratch_size());
  made.Compute(x.data<float>(), DataOf(recorded, 1), DataOf(recorded, 2),
               static_cast<const float*>(DataOf(recorded, 3)), DataOf<float>(state), DataOf<char>(scratch),
               reinterpret_cast<float*>(output));
  return absl::OkStatus();
}

TEST(IntegerRecurrentTest, OutputsAreThoseOfTheReferenceKernels) {
  int checked = 0;
  for (const IntegerCase& recorded : ReadIntegerCases()) {
    const bool is_svdf = recorded.op == "SVDF";
    const bool is_lstm = recorded.op == "UNIDIRECTIONAL_SEQUENCE_LSTM";
    if (!is_svdf && !is_lstm && recorded.op != "UNIDIRECTIONAL_SEQUENCE_RNN") continue;
    SCOPED_TRACE(recorded.name);
    const IntegerOperand& expected = recorded.output;
    Memory memory = Allocate(static_cast<int64_t>(expected.bytes.size()));
    char* output = DataOf<char>(memory);
    const absl::Status status = is_svdf   ? Svdf(recorded, output)
                                : is_lstm ? Lstm(recorded, output)
                                          : Rnn(recorded, output);
    ASSERT_TRUE(status.ok()) << status;
    ++checked;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      if (expected.type == "float32") {
        EXPECT_NEAR(reinterpret_cast<const float*>(output)[i], expected.data<float>()[i], 1e-5f) << "element " << i;
      } else {
        EXPECT_EQ(static_cast<int>(output[i]), static_cast<int>(expected.bytes[i])) << "element " << i;
      }
      if (::testing::Test::HasFailure()) break;
    }
  }
  EXPECT_GE(checked, 21);
}

TEST(IntegerRecurrentTest, RejectsImpossibleParameters) {
  SvdfSizes sizes;
  sizes.batch = sizes.input = sizes.units = sizes.rank = 2;
  sizes.memory = 0;
  EXPECT_FALSE(FloatSvdf::Make(sizes, WeightType::kFloat, 1, 1, false, RecurrentActivation::kNone).ok());
  sizes.memory = 3;
  EXPECT_TRUE(FloatSvdf::Make(sizes, WeightType::kFloat, 1, 1, false, RecurrentActivation::kNone).ok());
  EXPECT_FALSE(FloatSvdf::Make(sizes, WeightType::kInt8, std::nanf(""), 1, false, RecurrentActivation::kNone).ok());
  sizes.units = sizes.memory = int64_t{1} << 30;
  EXPECT_FALSE(FloatSvdf::Make(sizes, WeightType::kFloat, 1, 1, false, RecurrentActivation::kNone).ok());
  LstmSizes lstm;
  lstm.batch = lstm.time = lstm.input = 1;
  lstm.cell = 3;
  lstm.output = 2;
  const auto made = FloatLstm::Make(lstm, WeightType::kFloat, LstmOperands(), LstmScales(), LstmOptions());
  EXPECT_EQ(made.status().message(), "the LSTM has 3 cells and 2 outputs, but no projection");
}

}  // namespace
}  // namespace permafrost
