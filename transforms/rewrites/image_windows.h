// Reads and writes the windows of convolutions and poolings: strides, dilations and padding.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_IMAGE_WINDOWS_H_
#define PERMAFROST_TRANSFORMS_REWRITES_IMAGE_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

// Padding before and after one dimension, in elements.
struct Margin {
  int64_t before = 0, after = 0;

  bool is_zero() const { return before == 0 && after == 0; }
  friend bool operator==(Margin a, Margin b) { return a.before == b.before && a.after == b.after; }
};

// One spatial axis of a window.
struct WindowForm {
  int dim = 0;  // Dimension of the image.
  int64_t kernel = 1, stride = 1, dilation = 1;
  Margin explicit_padding;  // Zero unless the node's padding is EXPLICIT.

  // Sets *margin to the SAME padding of an axis of `size` elements (kUnknownDim: not known). Returns false if that
  // depends on an unknown size.
  bool SamePadding(int64_t size, Margin* margin) const;
};

// The attributes of a node that slides a window over an image of rank 4.
struct WindowForms {
  WindowForm y, x;
  int channel_dim = 3;  // 1 for NCHW.
  std::string padding;  // "SAME", "VALID" or "EXPLICIT".

  bool is_nchw() const { return channel_dim == 1; }
  bool is_dilated() const { return y.dilation != 1 || x.dilation != 1; }
};

// Reads strides, dilations, padding, explicit_paddings and data_format; absent ones have their defaults. `kernel_y` and
// `kernel_x` are the sizes of the kernel. Returns FailedPrecondition for values that no TensorFlow kernel supports.
absl::StatusOr<WindowForms> WindowFormsOf(const Node& node, int64_t kernel_y, int64_t kernel_x);

// Sets the padding of height and width: VALID if it is zero, SAME if that is equivalent for an image of this shape
// (whose rank and dimensions may be unknown), else EXPLICIT.
void SetPadding(Node* node, const WindowForms& forms, Margin y, Margin x, const Shape& image);
// Returns the padding that SetPadding would set.
std::string PaddingFor(const WindowForms& forms, Margin y, Margin x, const Shape& image);

// Returns the static shape of a tensor: that of its constant, or the one in `shapes` (may be null).
Shape KnownShape(TensorRef ref, const ShapeMap* shapes);

// Returns the constant paddings at input `index` of a Pad, MirrorPad, SpaceToBatchND or BatchToSpaceND: one margin for
// each of `rows` rows. Returns FailedPrecondition if they are not constant, have another shape or are negative.
absl::StatusOr<std::vector<Margin>> MarginsAt(const Node& node, int index, int rows);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_IMAGE_WINDOWS_H_
