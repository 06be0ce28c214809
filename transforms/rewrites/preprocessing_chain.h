// Recognises the nodes at the beginning of a graph that prepare images: casts, scales, means and the order of channels.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_PREPROCESSING_CHAIN_H_
#define PERMAFROST_TRANSFORMS_REWRITES_PREPROCESSING_CHAIN_H_

#include <vector>

#include "absl/status/status.h"
#include "graph/analysis/channel_map.h"
#include "graph/graph.h"

namespace permafrost {

// The nodes after an input of images that only map channels, each the only reader of the one before.
struct PreprocessingChain {
  Node* placeholder = nullptr;
  DType dtype = DType::kInvalid;  // Of the placeholder.
  std::vector<Node*> nodes;       // In order, without the placeholder; may be empty.
  ChannelMap map;                 // From the input to the end of the chain.

  // The tensor that the rest of the graph reads.
  TensorRef end() const { return {nodes.empty() ? placeholder : nodes.back(), 0}; }
};

// Returns the declared inputs that are placeholders of images, with the chains that follow them: float, uint8, int8 or
// int32, with a shape of rank 4. A chain ends before the first node that maps no channels, and before a
// declared output.
std::vector<PreprocessingChain> FindPreprocessing(const Graph& graph);

// Redirects the readers of the chain's end to `to` and removes the nodes of the chain, and the constants that only they
// read. REQUIRES: the chain has nodes, none of which leads to `to`.
absl::Status RemoveChain(Graph* graph, const PreprocessingChain& chain, TensorRef to);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_PREPROCESSING_CHAIN_H_
