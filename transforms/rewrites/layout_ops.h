// Ops whose attribute data_format says in which order they read and write the dimensions of an image, and its change.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_LAYOUT_OPS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_LAYOUT_OPS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "transforms/rewrites/permutation.h"

namespace permafrost {

inline constexpr absl::string_view kChannelsLast = "NHWC";
inline constexpr absl::string_view kChannelsFirst = "NCHW";

// The inputs and outputs of a layout op that are images of rank 4, and the constant that has a number for each of their
// dimensions. Output 0 is an image, and no other output is.
struct LayoutOperands {
  int image = 0;       // Input.
  int parameter = -1;  // Input: the sizes of Conv2DBackpropInput; -1 if there is none.
};

// Returns the operands if the op has a layout, otherwise null. Of ops that also take other ranks (BiasAdd), a node has
// a layout only if its input has rank 4.
const LayoutOperands* FindLayoutOperands(Op op);

// Returns the attribute data_format: kChannelsLast or kChannelsFirst. InvalidArgument for any other value.
absl::StatusOr<std::string> FormatOf(const Node& node);

// Sets data_format, and permutes the attributes that have a number for each dimension: new[i] = old[order[i]]. OK if
// CanSetFormat is. Inputs are left to the caller.
absl::Status SetFormat(Node* node, absl::string_view format, const Permutation& order);
// Returns OK if the attributes have a number for each of four dimensions, as far as they are present.
absl::Status CanSetFormat(const Node& node);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_LAYOUT_OPS_H_
