// Reproducible random inputs for a graph, for use without real data.
#ifndef PERMAFROST_RUNTIME_CHECK_CHECKING_SEEDED_INPUTS_H_
#define PERMAFROST_RUNTIME_CHECK_CHECKING_SEEDED_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace permafrost {

// Returns a random tensor; the same seed gives the same tensor on every machine. The elements are uniform in
//   floating types, complex parts   [0, 1) for rank 4, as images are; else [-1, 1)
//   uint8                           0 to 255
//   other integers, quantised codes 0 to 7, so that they can serve as indices and sizes
//   bool                            false and true
// and strings are empty. InvalidArgument for a shape that is not fully known, Unimplemented for resource and variant,
// ResourceExhausted above 4 GiB.
absl::StatusOr<Tensor> SeededTensor(DType dtype, const Shape& shape, uint64_t seed);

// Returns one tensor for each of `inputs`, which must be placeholders or have a node with a known output type. The
// shape is that in `shapes` under the input's text, otherwise the placeholder's, with 1 for an unknown dimension 0 (the
// batch). InvalidArgument names an input whose shape remains unknown.
absl::StatusOr<std::vector<Tensor>> SeededInputs(absl::Span<const Endpoint> inputs,
                                                 const absl::flat_hash_map<std::string, Shape>& shapes, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_CHECKING_SEEDED_INPUTS_H_
