// Follows small integer tensors, on which shapes depend, through the graph.
#ifndef PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_
#define PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

// Larger tensors are not followed: no shape needs them, and a graph may hold millions.
inline constexpr int64_t kMostPropagatedElements = 1024;
// Nor are any once this many elements are held: a few bytes of a file may stand for a thousand equal elements.
inline constexpr size_t kMostPropagatedElementsInAll = size_t{1} << 24;

// Visited node by node in topological order. Elements that are not known stay so; a value that cannot be computed (an
// overflow, a division by zero, an attribute of the wrong kind) is not known.
class IntegerPropagation : public ValueSource {
 public:
  const KnownIntegers* Integers(TensorRef ref) const override;

  // Computes the integer outputs of the context's node, whose output shapes are inferred. REQUIRES: its producers have
  // been visited.
  void Visit(const ShapeContext& context);

 private:
  absl::flat_hash_map<std::pair<uint32_t, int>, KnownIntegers> known_;  // By node id and port.
  size_t elements_held_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_
