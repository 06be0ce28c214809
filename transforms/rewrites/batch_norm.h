// Batch norms as one multiplication and one addition per channel.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_
#define PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Returns true for BatchNormWithGlobalNormalization, FusedBatchNorm, FusedBatchNormV2 and FusedBatchNormV3. The data is
// input 0 and has rank 4; the result is output 0.
bool IsBatchNorm(Op op);

struct BatchNorm {
  std::vector<float> scale;  // result = data * scale + offset, per channel.
  std::vector<float> offset;
  int channel_dim = 3;  // 1 for NCHW.
};

// Returns the scale and offset, computed in float: scale = 1 / sqrt(variance + epsilon), times gamma if the op scales
// by it; offset = beta - mean * scale. Returns FailedPrecondition with the reason if parameters are not float constants
// (Identity nodes in between are allowed), is_training is set, or another output is used. Returns InvalidArgument if
// parameters have different lengths.
absl::StatusOr<BatchNorm> BatchNormOf(const Node& node);

// Returns the Const and Identity nodes that supply the parameters of `node`, for removal after the node.
std::vector<Node*> ParametersOf(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_
