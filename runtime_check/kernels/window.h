// Sliding windows: what convolutions and poolings have in common. Attributes strides, dilations, ksize, padding,
// explicit_paddings and data_format are read and checked here, and output sizes are computed here.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// Which dimension of an image tensor of rank 4 is which.
struct ImageLayout {
  int height = 1, width = 2, channel = 3;  // The batch is always dimension 0.

  bool is_nchw() const { return channel == 1; }
  Shape ShapeOf(int64_t batch, int64_t height_size, int64_t width_size, int64_t channels) const;
};

// How many elements lie between neighbours along each axis of an image tensor.
struct ImageStrides {
  int64_t batch, y, x, channel;

  // REQUIRES: the tensor has elements.
  ImageStrides(const ImageLayout& layout, int64_t height, int64_t width, int64_t channels)
      : batch(height * width * channels),
        y(layout.is_nchw() ? width : width * channels),
        x(layout.is_nchw() ? 1 : channels),
        channel(layout.is_nchw() ? height * width : 1) {}
};

// From attr data_format: NHWC or NCHW. InvalidArgument for anything else.
absl::StatusOr<ImageLayout> ReadImageLayout(const Node& node);

// One spatial axis. All counts are in pixels.
struct WindowAxis {
  int64_t input = 0;
  int64_t taps = 1;  // Size of the kernel.
  int64_t stride = 1;
  int64_t dilation = 1;  // Distance of taps.
  int64_t pad_before = 0;
  int64_t output = 0;

  // The input position of tap 0 for an output position; may lie outside.
  int64_t First(int64_t position) const { return position * stride - pad_before; }
  // The taps [*begin, *end) that lie inside the input for an output position. Empty as begin == end.
  void TapsInside(int64_t position, int64_t* begin, int64_t* end) const;
  // Whether those are all.
  bool IsInside(int64_t position) const {
    const int64_t first = First(position);
    return first >= 0 && first + (taps - 1) * dilation < input;
  }
  // The output positions [*begin, *end) for which all taps lie inside.
  void FullPositions(int64_t* begin, int64_t* end) const;
};

struct Window {
  WindowAxis y, x;
};

// Where the size of the kernel comes from.
struct KernelSize {
  int64_t y, x;
};

// Reads strides, dilations (absent: 1), padding and explicit_paddings of the node, and computes the output sizes for an
// input of that size. InvalidArgument for values that no image can have: strides or dilations below 1 or above 2^31,
// windows over batch or channels, negative outputs.
absl::StatusOr<Window> ReadWindow(const Node& node, const ImageLayout& layout, KernelSize kernel, int64_t input_height,
                                  int64_t input_width);

// Attr ksize as the kernel of a pooling. InvalidArgument unless it has 4 values of 1 or more, those of batch and
// channel 1.
absl::StatusOr<KernelSize> ReadKernelSize(const Node& node, const ImageLayout& layout);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_
