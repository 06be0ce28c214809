// Which constants the passes that change the precision of weights work on.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {

// How many elements `node` has if it is a float Const; nothing for any other node. The elements are not touched.
// InvalidArgument or DataLoss, naming the node, for a Const of any type whose `value` is missing or cannot be read, as
// the original has it.
absl::StatusOr<std::optional<int64_t>> FloatConstantSize(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_FLOAT_CONSTANTS_H_
