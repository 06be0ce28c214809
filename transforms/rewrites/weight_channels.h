// Along which dimension a constant's channels lie, as those who read it see it.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_

#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

struct WeightChannels {
  int dim = -1;            // -1: no dimension is better than another, or there are too few elements for each channel.
  bool is_linear = false;  // The constant is the weights of sums: a convolution or a matrix product reads it.
};

// From the op that reads `constant`, directly or through up to 8 Identity nodes: the output channels of a convolution
// or matrix product, the rows of a table that Gather reads, otherwise the last dimension. Of several readers the first
// in the order of their ids that is linear counts. O(uses). REQUIRES: `shape`, the constant's, is fully known.
WeightChannels FindWeightChannels(const Node& constant, const Shape& shape);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_
