// What a batch norm computes: one multiplication and one addition per channel.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_
#define PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// BatchNormWithGlobalNormalization, FusedBatchNorm, FusedBatchNormV2 or FusedBatchNormV3: the data is input 0 and has
// rank 4, the result is output 0.
bool IsBatchNorm(Op op);

struct BatchNorm {
  std::vector<float> scale;  // result = data * scale + offset, per channel.
  std::vector<float> offset;
  int channel_dim = 3;  // 1 for NCHW.
};

// In float arithmetic: scale = 1 / sqrt(variance + epsilon), times gamma where the op says so; offset = beta - mean *
// scale. FailedPrecondition says what is in the way: parameters that are not float constants (Identity nodes between
// are fine), is_training, a use of another output. InvalidArgument: parameters of different lengths.
absl::StatusOr<BatchNorm> BatchNormOf(const Node& node);

// The Const nodes and Identity nodes that node's parameters are read from, for removal once the node is gone.
std::vector<Node*> ParametersOf(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_BATCH_NORM_H_
