// Quantisation of weights to fewer bits, and correction of the quantisation error with calibration data.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegates/onednn/weighted.h"
#include "runtime_check/precision/precision_plan.h"

namespace permafrost {
namespace onednn {

// Returns the 8-bit type for a tensor: u8 if no value is negative, else s8. Values up to the calibrated bound do not
// saturate.
StorageType EightBitType(const TensorStatistics& statistics);

// Maps elements of weights to output channels: element `i` belongs to channel i / inner % outputs.
struct OutputsOf {
  size_t outputs, inner = 1;

  explicit OutputsOf(const WeightedOp& op) : outputs(static_cast<size_t>(op.output_channels())) {
    // Output channels are the last dimension, except in the cases below.
    const ParsedNode& parsed = op.parsed;
    if (parsed.kind == NodeKind::kMatMul && parsed.transpose_b) inner = static_cast<size_t>(parsed.depth);
    if (parsed.kind == NodeKind::kTransposedConvolution) inner = static_cast<size_t>(parsed.window.input_channels);
  }
  size_t operator()(size_t i) const { return i / inner % outputs; }
};

// Returns the weights in TensorFlow's layout, multiplied by the scale of the op.
std::vector<float> ScaledWeights(const WeightedOp& op);

struct EightBitWeights {
  std::vector<int8_t> values;
  std::vector<float> scales;  // One per output channel.
};

// Quantises to nearest, with the scale per output channel that minimises the squared error. Returns Unimplemented for
// weights that are not finite.
absl::StatusOr<EightBitWeights> QuantizeWeights(const WeightedOp& op, const std::vector<float>& weights);

// Subtracts from the bias of the op the average error of each output channel that the weight errors (`actual` -
// `exact`) cause, computed from `means`. Does nothing if the op has no means.
void CorrectBias(const std::vector<float>& exact, const std::vector<float>& actual, WeightedOp* op);

// Returns the 8-bit weights of the op, and corrects its bias for the quantisation error. Returns Unimplemented for
// weights that are not finite.
absl::StatusOr<EightBitWeights> QuantizeAndCorrect(WeightedOp* op);

// Rounds to bfloat16.
std::vector<float> RoundedToBf16(const std::vector<float>& values);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_QUANTIZATION_H_
