// A structural hash: tells whether an edit changed anything.
#ifndef PERMAFROST_GRAPH_VALIDATION_HASH_H_
#define PERMAFROST_GRAPH_VALIDATION_HASH_H_

#include <cstdint>

#include "graph/graph.h"

namespace permafrost {

// Over everything that reaches the output: nodes in order with name, op, device, inputs, attributes, and what surrounds
// them. Attributes count by content up to 256 bytes; larger payloads (weights) count by the identity of their buffer
// and a sample of it, so that hashing costs the structure, not the weights: two graphs with equal bytes in different
// buffers may differ in hash, but a graph that was edited never keeps its own. O(nodes + edges). Differs between
// processes.
uint64_t StructuralHash(const Graph& graph);

struct GraphHashes {
  uint64_t structural = 0;  // As StructuralHash.
  // Of the same, less names, devices, fields that are not understood and the order of the nodes, but with the declared
  // inputs and outputs: everything on which Validate and InferShapes depend. Where it stays, so does what they find.
  uint64_t meaning = 0;
};

// Both in one walk.
GraphHashes HashGraph(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_VALIDATION_HASH_H_
