// Fuses mirror padding into a Conv2D.
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
    PF_RETURN_IF_ERROR(RequireAbsorbablePad(*pad));
    PF_ASSIGN_OR_RETURN(const std::string mode, StringAttr(*pad, "mode"));
    const RewriteScope rewrite(context, graph, {convolution, pad});
    if (!rewrite) return LimitReached();
    PF_ASSIGN_OR_RETURN(const TensorRef paddings, PaddingsFor(graph, *pad, convolution));
    return BecomeFused(graph, convolution, ops::kFusedPadConv2D, mode, {pad->input(0), paddings, convolution->input(1)},
                       {pad});
  };
  return FuseEach(graph, ops::kMirrorPad, context, fuse);
}

}  // namespace

// Fuses a MirrorPad into the Conv2D that reads it, so that the padded image is never stored.
//
//   Conv2D c(MirrorPad(x, paddings), w)   =>   FusedPadConv2D c(x, paddings, w)
//
// Run fuse_resize_pad_and_conv and fuse_resize_and_conv first, because they also fuse a resize. For a Pad with zeros,
// see fold_pad_into_conv.
//
// Leaves the nodes unchanged if the MirrorPad has another reader or is an output; if the paddings are not constant or
// pad batch or channels; if the convolution is NCHW or has dilations, explicit paddings or groups, which the fused op
// does not support; or if the batch is known to contain more than one image, because TensorFlow's kernel for the fused
// op computes only the first image correctly.
DEFINE_PASS(fuse_pad_and_conv) {
  return Pass<NoParams>("Fuses a MirrorPad into the Conv2D that reads it.")
      .Why("The padded image is never stored in memory.")
      .LooksFor({ops::kMirrorPad})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Fuse);
}

}  // namespace permafrost
