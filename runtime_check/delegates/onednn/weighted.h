// Convolutions and matrix products with constant weights, and the steps fused into them.
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
  Tensor weights;            // In TensorFlow's layout.
  std::string weights_name;  // DelegateTensor::value_name.
  // One value per output channel: the weights are multiplied by `scale`, then `bias` is added. Empty means 1 and 0.
  std::vector<float> scale, bias;
  std::vector<Step> post_steps;  // Each reads the result of the previous one.
  int input = 0, output = 0;     // Storages.
  std::string name;
  // Mean of each input channel, if calibration has measured it. It is used to correct the average quantisation error of
  // the weights. Empty otherwise.
  std::vector<float> means;

  int64_t output_channels() const { return OutputChannels(parsed); }
};

// Appends the step to the post-steps. Merges it with the last post-step if one function can do both, and omits a step
// that has no effect. Returns false, without changes, if the post-steps with this step cannot be appended to a
// primitive. With `takes_slopes` the rule is that of the delegate's own kernels, which also support a slope per channel
// (kPrelu). oneDNN 2.6.3 applies the parameters of the first post-op to all post-ops with the same algorithm, so a
// primitive never gets two of one algorithm with different parameters.
bool AppendPostStep(const Step& step, bool takes_slopes, std::vector<Step>* post_steps);

// Returns the number of multiplications in a convolution or matrix product.
int64_t Products(const ParsedNode& parsed);

// Returns OK if oneDNN has a fast implementation of the op without post-steps, else Unimplemented.
absl::Status CheckFast(const ParsedNode& parsed);

// Makes the piece that computes the op. Products have the type of the input: float, bfloat16 or 8-bit; sums have 32
// bits. An 8-bit result requires an 8-bit input; a bfloat16 result requires a bfloat16 or 8-bit input. Returns Internal
// if oneDNN fails, and Unimplemented if its only implementation with these post-steps is slow. Reads the packed weights
// from `packed` and stores new ones there; null disables this cache.
absl::StatusOr<std::unique_ptr<Piece>> MakeWeighted(WeightedOp op, const StorageTypes& types, int num_threads,
                                                    PackedWeights* packed);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_WEIGHTED_H_
