// Convolutions and matrix products with constant weights, and what is fused to them.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WEIGHTED_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WEIGHTED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/onednn/node_kinds.h"
#include "runtime_check/delegates/onednn/piece.h"
#include "runtime_check/delegates/onednn/steps.h"
#include "runtime_check/packing/packed_weights.h"

namespace permafrost {
namespace onednn {

struct WeightedOp {
  ParsedNode parsed;
  Tensor weights;            // As TensorFlow has them.
  std::string weights_name;  // DelegateTensor::value_name.
  // Of each output channel: the weights are multiplied by `scale`, then `bias` is added. Empty: 1 and 0.
  std::vector<float> scale, bias;
  std::vector<Step> post_steps;  // Each reads the result of the one before.
  int input = 0, output = 0;     // Storages.
  std::string name;
  // Of the input's channels, where calibration has found them: the errors of narrow weights are then put right on
  // average. Empty otherwise.
  std::vector<float> means;

  int64_t output_channels() const {
    return parsed.kind == NodeKind::kMatMul ? parsed.columns : parsed.window.output_channels;
  }
};

// Adds the step to post-steps: as a part of the last one where the two are one function, left out where it does
// nothing. False, and nothing is done, when a primitive cannot do it behind those; with `takes_slopes` one of ours
// will, which also does slopes by channel (kPrelu). Version 2.6.3 gives all post-ops of one algorithm the numbers of
// the first, so it gets no two that differ in them.
bool AppendPostStep(const Step& step, bool takes_slopes, std::vector<Step>* post_steps);

// What a convolution or matrix product adds up, in products.
int64_t Products(const ParsedNode& parsed);

// OK when oneDNN has a fast implementation of the op without post-steps; else Unimplemented.
absl::Status CheckFast(const ParsedNode& parsed);

// Products are of the input's type: of floats, bfloat16 or eight bits; sums are of 32 bits. A result of eight bits
// needs such an input, one of bfloat16 one that is narrow. Internal when oneDNN fails. Unimplemented when it has only a
// slow implementation with these post-steps. Takes the weights from `packed`, and leaves them there; null for nobody.
absl::StatusOr<std::unique_ptr<Piece>> MakeWeighted(WeightedOp op, const StorageTypes& types, int num_threads,
                                                    PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WEIGHTED_H_
