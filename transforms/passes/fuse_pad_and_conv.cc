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

// Fuses a MirrorPad into the Conv2D behind it, so that the padded image need not be in memory.
//
//   Conv2D c(MirrorPad(x, paddings), w)   =>   FusedPadConv2D c(x, paddings, w)
//
// Run fuse_resize_pad_and_conv and fuse_resize_and_conv first: they take a resizing too. For a Pad with zeros see
// fold_pad_into_conv.
//
// Left alone when the MirrorPad has another user or is an output, when the paddings are not constant or pad batch or
// channels, and when the convolution is NCHW or has dilations, explicit paddings or groups, none of which the fused op
// has; and for a batch that is known to have more than one image, of which TensorFlow's kernel of the fused op computes
// only the first right.
DEFINE_PASS(fuse_pad_and_conv) {
  return Pass<NoParams>("Fuses a MirrorPad into the Conv2D behind it.")
      .Why("The padded image need not be in memory.")
      .LooksFor({ops::kMirrorPad})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Fuse);
}

}  // namespace permafrost
