// Finds the channel dimension of a constant from the ops that read it.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_

#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

struct WeightChannels {
  int dim = -1;            // -1: no dimension is preferred, or there are too few elements per channel.
  bool is_linear = false;  // True if a convolution or matrix product reads the constant as its weights.
};

// Returns the channel dimension for the op that reads `constant`, directly or through up to 8 Identity nodes: the
// output channels of a convolution or matrix product, the rows of a table that Gather reads, otherwise the last
// dimension. Among several readers, the first linear one in the order of ids counts. O(uses). REQUIRES: `shape`, that
// of the constant, is fully known.
WeightChannels FindWeightChannels(const Node& constant, const Shape& shape);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_WEIGHT_CHANNELS_H_
