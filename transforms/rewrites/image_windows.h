// The windows of convolutions and poolings, as passes see and change them: strides, dilations and padding.
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

// What lies before and behind one dimension, in elements.
struct Margin {
  int64_t before = 0, after = 0;

  bool is_zero() const { return before == 0 && after == 0; }
  friend bool operator==(Margin a, Margin b) { return a.before == b.before && a.after == b.after; }
};

// One spatial axis of a window.
struct WindowForm {
  int dim = 0;  // Of the image.
  int64_t kernel = 1, stride = 1, dilation = 1;
  Margin explicit_padding;  // Zero unless the node's padding is EXPLICIT.

  // What padding SAME puts round an axis of `size` elements (kUnknownDim: not known). False where that depends on the
  // size and the size is not known.
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
// `kernel_x` are the kernel's sizes. FailedPrecondition for values that no kernel of TensorFlow takes.
absl::StatusOr<WindowForms> WindowFormsOf(const Node& node, int64_t kernel_y, int64_t kernel_x);

// Writes a padding of height and width: VALID where there is none, SAME where that is the same for an image of that
// shape (whose rank and dimensions need not be known), else EXPLICIT.
void SetPadding(Node* node, const WindowForms& forms, Margin y, Margin x, const Shape& image);
// What SetPadding writes.
std::string PaddingFor(const WindowForms& forms, Margin y, Margin x, const Shape& image);

// The static shape of a tensor: that of the constant that it is, or what `shapes` (may be null) knows.
Shape KnownShape(TensorRef ref, const ShapeMap* shapes);

// The constant paddings at input `index` of a Pad, MirrorPad, SpaceToBatchND or BatchToSpaceND, one margin for each of
// `rows` rows. FailedPrecondition when they are not constant, have another shape or are negative.
absl::StatusOr<std::vector<Margin>> MarginsAt(const Node& node, int index, int rows);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_IMAGE_WINDOWS_H_
