// Weights in fewer bits, and what calibration lets one put right again.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

// The type of eight bits for a tensor: u8 where nothing is negative, else s8. Values up to the bound keep their place.
StorageType EightBitType(const TensorStatistics& statistics);

// Numbers of the output channels of weights: those of element `i` are i / inner % outputs.
struct OutputsOf {
  size_t outputs, inner = 1;

  explicit OutputsOf(const WeightedOp& op) : outputs(static_cast<size_t>(op.output_channels())) {
    // Output channels are the last dimension, but for some.
    const ParsedNode& parsed = op.parsed;
    if (parsed.kind == NodeKind::kMatMul && parsed.transpose_b) inner = static_cast<size_t>(parsed.depth);
    if (parsed.kind == NodeKind::kTransposedConvolution) inner = static_cast<size_t>(parsed.window.input_channels);
  }
  size_t operator()(size_t i) const { return i / inner % outputs; }
};

// The weights as TensorFlow has them, multiplied by the op's scale.
std::vector<float> ScaledWeights(const WeightedOp& op);

struct EightBitWeights {
  std::vector<int8_t> values;
  std::vector<float> scales;  // Of each output channel.
};

// To the nearest, with the scale of each output channel that makes the squares of the errors least. Unimplemented for
// weights that are not finite.
absl::StatusOr<EightBitWeights> QuantizeWeights(const WeightedOp& op, const std::vector<float>& weights);

// Subtracts from the op's bias what the errors of the weights (`actual` - `exact`) add to each output channel on
// average, by the op's `means`. Nothing is done where there are none.
void CorrectBias(const std::vector<float>& exact, const std::vector<float>& actual, WeightedOp* op);

// The op's weights in eight bits. Puts its bias right for what they lose. Unimplemented as above.
absl::StatusOr<EightBitWeights> QuantizeAndCorrect(WeightedOp* op);

// Rounds to bfloat16.
std::vector<float> RoundedToBf16(const std::vector<float>& values);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_
