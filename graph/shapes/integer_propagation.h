// Propagates the values of small integer tensors, on which shapes depend, through the graph.
#ifndef PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_
#define PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

// Larger tensors are not propagated: no shape depends on them, and a graph may hold millions of elements.
inline constexpr int64_t kMostPropagatedElements = 1024;
// Limit on all elements held. A few bytes of a file can encode a thousand equal elements.
inline constexpr size_t kMostPropagatedElementsInAll = size_t{1} << 24;

// The known integer tensors of a graph, visited node by node in topological order. Unknown elements stay unknown. A
// value that cannot be computed (overflow, division by zero, attribute of the wrong kind) is unknown.
class IntegerPropagation : public ValueSource {
 public:
  const KnownIntegers* Integers(TensorRef ref) const override;

  // Computes the integer outputs of the context's node. REQUIRES: the output shapes are inferred and the producers have
  // been visited.
  void Visit(const ShapeContext& context);

 private:
  absl::flat_hash_map<std::pair<uint32_t, int>, KnownIntegers> known_;  // By node id and port.
  size_t elements_held_ = 0;
};

}  // namespace permafrost

#endif  // PERMAFROST_GRAPH_SHAPES_INTEGER_PROPAGATION_H_
