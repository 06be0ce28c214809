// Finds the constants for passes that change the precision of weights.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// Returns the number of elements of a float Const; nothing for any other node. The elements are not read. Returns
// InvalidArgument or DataLoss, naming the node, for a Const of any type whose `value` is missing or cannot be read, as
// TensorFlow's transform_graph does.
absl::StatusOr<std::optional<int64_t>> FloatConstantSize(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_
