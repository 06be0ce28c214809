// The steps of which ReadWindow consists, for ops whose window has other attributes, or comes from inputs.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_STEPS_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_STEPS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/kernels/window.h"

namespace permafrost {

struct WindowSteps {
  KernelSize kernel, strides, dilations;
};

// Returns the spatial ones of four values, one for each dimension. Returns InvalidArgument unless there are four, each
// in [1, 2^31), and Unimplemented if that of the batch or of the channels is not 1. `name` is for messages.
absl::StatusOr<KernelSize> SpatialPair(absl::Span<const int64_t> values, const ImageLayout& layout,
                                       absl::string_view name);

// Reads padding and explicit_paddings of the node, and computes the output sizes for an input of that size. Returns
// InvalidArgument for impossible values, as ReadWindow.
absl::StatusOr<Window> PadWindow(const Node& node, const ImageLayout& layout, const WindowSteps& steps,
                                 int64_t input_height, int64_t input_width);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_STEPS_H_
