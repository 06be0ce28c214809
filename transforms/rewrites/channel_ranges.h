// Lines of calibration files with the ranges of activations by channel, which equalize_channels reads.
//
// A line for each tensor, whose last dimension is that of the channels: "@channels TENSOR LOWS HIGHS", where LOWS and
// HIGHS are base64 of little-endian floats. Other lines are those of other passes.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_RANGES_H_
#define PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_RANGES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace permafrost {

struct ChannelRange {
  std::vector<float> low, high;  // The least and the largest value of each channel.
};

// By the names of tensors ("conv", "split:1").
using ChannelRanges = absl::flat_hash_map<std::string, ChannelRange>;

// InvalidArgument, with the number of the line, if a line of this kind has another form or
// numbers that are not finite; or if there is none.
absl::StatusOr<ChannelRanges> ParseChannelRanges(absl::string_view text);

// Returns the line, with its newline. Empty if the name contains a blank.
std::string ChannelRangeLine(absl::string_view tensor, const ChannelRange& range);

// Returns the float tensors whose ranges equalize_channels may use, in the order of the nodes: the data of convolutions
// and matrix products with constant weights, and that of Relu.
std::vector<TensorRef> TensorsWithChannelRanges(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_CHANNEL_RANGES_H_
