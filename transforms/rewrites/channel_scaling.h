// Scaling of convolutions and matrix products per channel, by changing their weights.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// "Convolution" stands for Conv2D, DepthwiseConv2dNative, Conv2DBackpropInput and MatMul: ops that are linear in input
// 0 (Conv2DBackpropInput: 2) and have their weights at input 1.
bool IsConvolution(Op op);
inline constexpr int kWeightsInput = 1;
int DataInput(Op op);

// How the channels lie in a tensor of weights: element i belongs to channel (i / inner) % count.
struct Channels {
  int64_t count = 0;
  int64_t inner = 1;
};
// A dimension as channels: what lies behind it is inside a channel. REQUIRES: fully known.
Channels ChannelsAlong(const Shape& shape, int dim);

// The channels of the result, or of the data input. FailedPrecondition says what is in the way: weights of another
// rank, a MatMul that transposes its data.
absl::StatusOr<Channels> OutputChannels(const Node& convolution, const Shape& weights);
absl::StatusOr<Channels> InputChannels(const Node& convolution, const Shape& weights);

// The dimension of the result that holds the channels, and the rank of the result: 3 of 4 for NHWC, 1 of 4 for NCHW, 1
// of 2 for MatMul. FailedPrecondition for a layout that is neither.
struct ChannelDim {
  int dim = 0;
  int rank = 0;
};
absl::StatusOr<ChannelDim> ChannelDimOf(const Node& convolution);

// The weights, a float constant. FailedPrecondition otherwise.
absl::StatusOr<Tensor> WeightsOf(const Node& convolution);

// `factor` as one value per channel, when multiplying by it does to each channel the same as broadcasting it would. It
// may be a scalar or have any shape of ones around the channels. FailedPrecondition otherwise.
absl::StatusOr<std::vector<float>> PerChannel(const Tensor& factor, ChannelDim channel_dim, int64_t channels);

// FailedPrecondition names the first channel whose factor is infinite or NaN: weights with such a factor in them give
// other numbers than the product behind, since they are added up, and 0 times infinity is NaN.
absl::Status CheckFinite(absl::Span<const float> scale);

// weights[i] * scale[channel of i], on up to `num_threads` threads. REQUIRES: float weights, one scale per channel.
absl::StatusOr<Tensor> ScaleChannels(const Tensor& weights, Channels channels, absl::Span<const float> scale,
                                     int num_threads);

// Gives input `index` of `node` another constant value. Where nobody else reads the Const (nodes that only wait for it
// do not), it keeps its node and name; otherwise the node gets a Const of its own, named after it.
absl::Status SetConstantInput(Graph* graph, Node* node, int index, Tensor value);

// `node` becomes what `source` is: op, attributes, device, data inputs; control inputs of both. Name, place and users
// stay those of `node`. Then `source` is removed. REQUIRES: `node` is the only user of `source`, which is no endpoint.
absl::Status TakeOver(Graph* graph, Node* node, Node* source);

// Removes the Const or Identity `node` and the chain of those that feed it, as far as nobody else needs them. Control
// edges from a constant that waits for nothing are no need: they go with it.
void RemoveUnusedConstant(Graph* graph, Node* node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_
