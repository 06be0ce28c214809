// Structural hashes that detect whether an edit changed a graph.
#ifndef PERMAFROST_GRAPH_VALIDATION_HASH_H_
#define PERMAFROST_GRAPH_VALIDATION_HASH_H_

#include <cstdint>

#include "graph/graph.h"

namespace permafrost {

// Hashes everything that is written to the output: nodes in order with name, op, device, inputs and attributes, and the
// graph's other fields. Attributes of up to 256 bytes are hashed by content. Larger payloads (weights) are hashed by
// the address of their buffer and a sample, so that the cost depends on the structure, not on the weights. Equal graphs
// with different buffers may have different hashes, but an edit always changes the hash. O(nodes + edges). Values
// differ between processes.
uint64_t StructuralHash(const Graph& graph);

struct GraphHashes {
  uint64_t structural = 0;  // Equals StructuralHash.
  // Like `structural`, but without names, devices, unknown fields and the order of nodes, and with the declared inputs
  // and outputs. It covers everything that Validate and InferShapes depend on: while it is unchanged, so are their
  // results.
  // results.
  uint64_t meaning = 0;
};

// Computes both hashes in one pass.
GraphHashes HashGraph(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VALIDATION_HASH_H_
