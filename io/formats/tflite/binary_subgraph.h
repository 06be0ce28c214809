// Recognises subgraphs that combine two values with one operator: the bodies of reductions and scatters of StableHLO.
#ifndef PERMAFROST_IO_FORMATS_TFLITE_BINARY_SUBGRAPH_H_
#define PERMAFROST_IO_FORMATS_TFLITE_BINARY_SUBGRAPH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "io/formats/tflite/container.h"

namespace permafrost {

// Returns the commutative function that the subgraph computes from its two inputs, or UNSUPPORTED. InvalidArgument if
// there is no such subgraph.
absl::StatusOr<tflite::ReduceWindowFunction> FunctionOfSubgraph(const TfliteContainer& container, int32_t subgraph);

// True if the subgraph returns its second input of two. False if there is no such subgraph.
bool ReturnsSecondInput(const TfliteContainer& container, int32_t subgraph);

}  // namespace permafrost

#endif  // PERMAFROST_IO_FORMATS_TFLITE_BINARY_SUBGRAPH_H_
