// A linear map of the channels of an image: preprocessing in a form that can be composed, inverted and applied.
//
// An input whose meaning a pass has changed carries the map in attributes of its placeholder, so that a check can feed
// the graphs before and after with values that stand for the same image.
#ifndef PERMAFROST_GRAPH_ANALYSIS_CHANNEL_MAP_H_
#define PERMAFROST_GRAPH_ANALYSIS_CHANNEL_MAP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// y[c] = scale[c] * x[source of c] + offset[c]. The source of a channel is itself, or the channel as far from the end
// if `is_reversed` (RGB and BGR). A single scale or offset is that of all channels. A value type.
struct ChannelMap {
  std::vector<double> scale = {1};
  std::vector<double> offset = {0};
  bool is_reversed = false;
  int channel_dim = 3;  // Of an image of rank 4: 3 for NHWC, 1 for NCHW.

  double ScaleOf(size_t channel) const { return scale[scale.size() == 1 ? 0 : channel]; }
  double OffsetOf(size_t channel) const { return offset[offset.size() == 1 ? 0 : channel]; }
  // Number of channels; 1 if all have the same factors.
  size_t num_channels() const { return scale.size() > offset.size() ? scale.size() : offset.size(); }
  bool IsIdentity() const;
  // True if scale and offset of all channels are finite, and no scale is 0.
  bool IsInvertible() const;
  // Returns "v * 0.5 - 1", "v * (...) + (...), channels reversed", or "v" for the identity.
  std::string ToString() const;

  friend bool operator==(const ChannelMap& a, const ChannelMap& b) {
    return a.scale == b.scale && a.offset == b.offset && a.is_reversed == b.is_reversed &&
           a.channel_dim == b.channel_dim;
  }
};

// Returns the map that applies `first`, then `second`. REQUIRES: the numbers of channels are equal or 1.
ChannelMap Compose(const ChannelMap& first, const ChannelMap& second);
// Returns the map that undoes `map`. REQUIRES: map.IsInvertible().
ChannelMap Inverse(const ChannelMap& map);

// Returns the mapped image as `dtype`: float, or uint8 with values rounded and limited to 0..255. InvalidArgument for
// an image of another type than float, uint8, int8, int32, or whose channels are not those of the map.
absl::StatusOr<Tensor> MapChannels(const ChannelMap& map, const Tensor& image, DType dtype);

// Records at a placeholder that its values are `map` of those that the model took as it was trained or exported, and
// reads that back. A placeholder without a record, or with a malformed one, has the identity.
void SetInputMap(Node* placeholder, const ChannelMap& map);
ChannelMap InputMapOf(const Node& placeholder);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_ANALYSIS_CHANNEL_MAP_H_
