// Scales convolutions and matrix products per channel by changing their weights.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns true for Conv2D, DepthwiseConv2dNative, Conv2DBackpropInput and MatMul, which this header calls convolutions:
// ops that are linear in input 0 (Conv2DBackpropInput: 2) and have their weights at input 1.
bool IsConvolution(Op op);
inline constexpr int kWeightsInput = 1;
int DataInput(Op op);

// Layout of the channels in a tensor of weights: element i belongs to channel (i / inner) % count.
struct Channels {
  int64_t count = 0;
  int64_t inner = 1;
};
// Returns dimension `dim` as channels; `inner` is the product of the later dimensions. REQUIRES: `shape` is fully
// known.
Channels ChannelsAlong(const Shape& shape, int dim);

// Return the channels of the result, or of the data input. Return FailedPrecondition with the reason for weights of
// another rank, or a MatMul that transposes its data.
absl::StatusOr<Channels> OutputChannels(const Node& convolution, const Shape& weights);
absl::StatusOr<Channels> InputChannels(const Node& convolution, const Shape& weights);

// The channel dimension of a result, and the rank of the result: 3 of 4 for NHWC, 1 of 4 for NCHW, 1
// of 2 for MatMul. Returns FailedPrecondition for any other layout.
struct ChannelDim {
  int dim = 0;
  int rank = 0;
};
absl::StatusOr<ChannelDim> ChannelDimOf(const Node& convolution);

// Returns the weights, or FailedPrecondition if they are not a float constant.
absl::StatusOr<Tensor> WeightsOf(const Node& convolution);

// Returns `factor` as one value per channel, if it broadcasts to one value per channel. It may be a scalar or have any
// shape in which all dimensions except that of the channels are 1. Returns FailedPrecondition otherwise.
absl::StatusOr<std::vector<float>> PerChannel(const Tensor& factor, ChannelDim channel_dim, int64_t channels);

// Returns FailedPrecondition with the first channel whose factor is infinite or NaN. Such a factor cannot be moved into
// the weights: the convolution adds products up, and 0 times infinity is NaN.
absl::Status CheckFinite(absl::Span<const float> scale);

// Returns weights[i] * scale[channel of i], computed on up to `num_threads` threads. REQUIRES: float weights, one scale
// per channel.
absl::StatusOr<Tensor> ScaleChannels(const Tensor& weights, Channels channels, absl::Span<const float> scale,
                                     int num_threads);

// Sets input `index` of `node` to another constant value. If the node is the only reader of the Const (control edges do
// not count), the Const keeps its place and name. Otherwise the node gets a new Const, named after it.
absl::Status SetConstantInput(Graph* graph, Node* node, int index, Tensor value);

// Turns `node` into a copy of `source`: op, attributes, device and data inputs, with the control inputs of both. `node`
// keeps its name, place and users. Then removes `source`. REQUIRES: `node` is the only user of `source`, which is not
// an endpoint.
absl::Status TakeOver(Graph* graph, Node* node, Node* source);

// Removes the Const or Identity `node` and the chain of nodes that feed it, up to the first with other uses. Control
// edges from a constant without control inputs do not count as uses; they are removed with it.
void RemoveUnusedConstant(Graph* graph, Node* node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_SCALING_H_
