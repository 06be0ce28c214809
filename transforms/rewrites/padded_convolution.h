// Fusing of what lies before a Conv2D into it: the parts of fuse_pad_and_conv, fuse_resize_and_conv and
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

// All of the checks give FailedPrecondition with the reason why the nodes are left alone.

// The fused ops are NHWC only and have no dilations, explicit paddings or groups, and TensorFlow's kernels compute only
// the first image of a batch right; `shapes` (may be null) tells groups and batches.
absl::Status RequireFusable(const Node& convolution, const ShapeMap* shapes);
// The MirrorPad may be absorbed: it has one user and pads height and width alone, by constants.
absl::Status RequireAbsorbablePad(const Node& pad);
// The ResizeBilinear may be absorbed: it has one user, does not move pixels to half positions, and its images have the
// type of the convolution.
absl::Status RequireAbsorbableResize(const Node& resize, const Node& convolution);

// The paddings of `pad` as the fused ops want them: int32, as they are or as a new Const in front of `convolution`.
absl::StatusOr<TensorRef> PaddingsFor(Graph* graph, const Node& pad, Node* convolution);

// `convolution` becomes `op` (FusedPadConv2D or FusedResizeAndPadConv2D) with these inputs and mode; it keeps its
// attributes T, strides and padding, and what `absorbed` waited for.
absl::Status BecomeFused(Graph* graph, Node* convolution, Op op, absl::string_view mode,
                         absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed);

// Runs `fuse` for each Conv2D whose data comes from output 0 of a node of op `before`, and counts those for which it
// gives OK; FailedPrecondition is a miss, Cancelled (LimitReached) is none, other errors end the pass.
absl::StatusOr<int64_t> FuseEach(Graph* graph, Op before, PassContext* context,
                                 absl::FunctionRef<absl::Status(Node* convolution, const ShapeMap* shapes)> fuse);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_PADDED_CONVOLUTION_H_
