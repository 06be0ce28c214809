// Fuses resizing and mirror padding into a Conv2D.
#include <string>

#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/padded_convolution.h"

namespace permafrost {
namespace {

absl::StatusOr<int64_t> Fuse(Graph* graph, const NoParams&, PassContext* context) {
  const auto fuse = [graph, context](Node* convolution, const ShapeMap* shapes) -> absl::Status {
    PF_RETURN_IF_ERROR(RequireFusable(*convolution, shapes));
    Node* pad = convolution->input(0).node;
    const TensorRef source = pad->input(0);
    if (source.node->op() != ops::kResizeBilinear || source.port != 0) {
      return Blocked(*source.node, "is the input of the MirrorPad, expected ResizeBilinear",
                     WayOut{"fuse_pad_and_conv fuses only the MirrorPad"});
    }
    Node* resize = source.node;
    PF_RETURN_IF_ERROR(RequireAbsorbablePad(*pad));
    PF_RETURN_IF_ERROR(RequireAbsorbableResize(*resize, *convolution));
    PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(*pad, "mode"));
    PF_ASSIGN_OR_RETURN(const bool align_corners, BoolAttr(*resize, "align_corners"));
    const RewriteScope rewrite(context, graph, {convolution, pad, resize});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef paddings, PaddingsFor(graph, *pad, convolution));
    PF_RETURN_IF_ERROR(BecomeFused(graph, convolution, ops::kFusedResizeAndPadConv2D, mode,
                                   {resize->input(0), resize->input(1), paddings, convolution->input(1)},
                                   {pad, resize}));
    convolution->SetAttr("resize_align_corners", AttrValue::Bool(align_corners));
    return absl::OkStatus();
  };
  return FuseEach(graph, ops::kMirrorPad, context, fuse);
}

}  // namespace

// Fuses a ResizeBilinear and a MirrorPad into the Conv2D that reads them, so that neither the resized nor the padded
// image is stored.
//
//   Conv2D c(MirrorPad(ResizeBilinear(x, size), paddings), w)   =>   FusedResizeAndPadConv2D c(x, size, paddings, w)
//
// Run this pass before fuse_pad_and_conv, which would fuse only the MirrorPad.
//
// Leaves the nodes unchanged if the MirrorPad or the ResizeBilinear has another reader or is an output; if the paddings
// are not constant or pad batch or channels; if the ResizeBilinear has half_pixel_centers or reads images of another
// type than the convolution; if the convolution is NCHW or has dilations, explicit paddings or groups, which the fused
// op does not support; or if the batch is known to contain more than one image, because TensorFlow's kernel for the
// fused op computes only the first image correctly.
DEFINE_PASS(fuse_resize_pad_and_conv) {
  return Pass<NoParams>("Fuses a ResizeBilinear and a MirrorPad into the Conv2D that reads them.")
      .Why("Neither the resized nor the padded image is stored in memory.")
      .LooksFor({ops::kMirrorPad})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Fuse);
}

}  // namespace permafrost
