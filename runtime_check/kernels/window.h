// Sliding windows, shared by convolutions and poolings. Reads and checks the attributes strides, dilations, ksize,
// padding, explicit_paddings and data_format, and computes output sizes.
#ifndef PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_
#define PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/shape.h"

namespace permafrost {

// The meaning of the dimensions of an image tensor of rank 4.
struct ImageLayout {
  int height = 1, width = 2, channel = 3;  // The batch is always dimension 0.

  bool is_nchw() const { return channel == 1; }
  Shape ShapeOf(int64_t batch, int64_t height_size, int64_t width_size, int64_t channels) const;
};

// The distances, in elements, between neighbours along each axis of an image tensor.
struct ImageStrides {
  int64_t batch, y, x, channel;

  // REQUIRES: the tensor has elements.
  ImageStrides(const ImageLayout& layout, int64_t height, int64_t width, int64_t channels)
      : batch(height * width * channels),
        y(layout.is_nchw() ? width : width * channels),
        x(layout.is_nchw() ? 1 : channels),
        channel(layout.is_nchw() ? height * width : 1) {}
};

// Reads attr data_format: NHWC or NCHW. Returns InvalidArgument for any other value.
absl::StatusOr<ImageLayout> ReadImageLayout(const Node& node);

// One spatial axis. All counts are in pixels.
struct WindowAxis {
  int64_t input = 0;
  int64_t taps = 1;  // Size of the kernel.
  int64_t stride = 1;
  int64_t dilation = 1;  // Distance between taps.
  int64_t pad_before = 0;
  int64_t output = 0;

  // Returns the input position of tap 0 for an output position; it may be outside the input.
  int64_t First(int64_t position) const { return position * stride - pad_before; }
  // Returns the taps [*begin, *end) that are inside the input for an output position; begin == end if there are none.
  void TapsInside(int64_t position, int64_t* begin, int64_t* end) const;
  // Returns true if all taps are inside the input.
  bool IsInside(int64_t position) const {
    const int64_t first = First(position);
    return first >= 0 && first + (taps - 1) * dilation < input;
  }
  // Returns the output positions [*begin, *end) for which all taps are inside the input.
  void FullPositions(int64_t* begin, int64_t* end) const;
};

struct Window {
  WindowAxis y, x;
};

// The size of the kernel.
struct KernelSize {
  int64_t y, x;
};

// Reads strides, dilations (default 1), padding and explicit_paddings of the node, and computes the output sizes for an
// input of that size. Returns InvalidArgument for impossible values: strides or dilations below 1 or above 2^31,
// windows over batch or channels, negative outputs.
absl::StatusOr<Window> ReadWindow(const Node& node, const ImageLayout& layout, KernelSize kernel, int64_t input_height,
                                  int64_t input_width);

// Reads attr ksize of a pooling. Returns InvalidArgument unless it has 4 positive values, and those of batch and
// channel are 1.
absl::StatusOr<KernelSize> ReadKernelSize(const Node& node, const ImageLayout& layout);

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_KERNELS_WINDOW_H_
