// Fuses the node before a Conv2D into it: shared by fuse_pad_and_conv, fuse_resize_and_conv and
// fuse_resize_pad_and_conv.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_PADDED_CONVOLUTION_H_
#define PERMAFROST_TRANSFORMS_REWRITES_PADDED_CONVOLUTION_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"

namespace permafrost {

// All checks return FailedPrecondition with the reason why the nodes are left unchanged.

// Checks that the convolution has a fused form. The fused ops support only NHWC, without dilations, explicit paddings
// or groups, and TensorFlow's kernels are correct only for a batch of one. `shapes` (may be null) show groups and
// batches.
absl::Status RequireFusable(const Node& convolution, const ShapeMap* shapes);
// Checks that the MirrorPad can be fused: it has one user and pads only height and width, by constants.
absl::Status RequireAbsorbablePad(const Node& pad);
// Checks that the ResizeBilinear can be fused: it has one user, does not use half-pixel centres, and its images have
// the type of the convolution.
absl::Status RequireAbsorbableResize(const Node& resize, const Node& convolution);

// Returns the paddings of `pad` as the int32 tensor that the fused ops require: unchanged, or as a new Const before
// `convolution`.
absl::StatusOr<TensorRef> PaddingsFor(Graph* graph, const Node& pad, Node* convolution);

// Turns `convolution` into `op` (FusedPadConv2D or FusedResizeAndPadConv2D) with these inputs and mode. It keeps its
// attributes T, strides and padding, and gets the control inputs of `absorbed`.
absl::Status BecomeFused(Graph* graph, Node* convolution, Op op, absl::string_view mode,
                         absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed);

// Calls `fuse` for each Conv2D whose data is output 0 of a node of op `before`, and returns the number of OK results.
// FailedPrecondition is recorded as a miss and Cancelled (LimitReached) is ignored; other errors end the pass.
absl::StatusOr<int64_t> FuseEach(Graph* graph, Op before, PassContext* context,
                                 absl::FunctionRef<absl::Status(Node* convolution, const ShapeMap* shapes)> fuse);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_PADDED_CONVOLUTION_H_
