// Fuses resizing into a Conv2D.
#include <vector>

#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/padded_convolution.h"

namespace permafrost {
namespace {

absl::StatusOr<int64_t> Fuse(Graph* graph, const NoParams&, PassContext* context) {
  const auto fuse = [graph, context](Node* convolution, const ShapeMap* shapes) -> absl::Status {
    PF_RETURN_IF_ERROR(RequireFusable(*convolution, shapes));
    Node* resize = convolution->input(0).node;
    PF_RETURN_IF_ERROR(RequireAbsorbableResize(*resize, *convolution));
    PF_ASSIGN_OR_RETURN(const bool align_corners, BoolAttr(*resize, "align_corners"));
    const RewriteScope rewrite(context, graph, {convolution, resize});
    if (!rewrite) return LimitReached();
    Tensor zeros = Tensor::FromVector(Shape({4, 2}), std::vector<int32_t>(8, 0));
    PF_ASSIGN_OR_RETURN(Node * paddings,
                        graph->AddConst(graph->UniqueName(absl::StrCat(convolution->name(), "_dummy_paddings")),
                                        std::move(zeros), convolution));
    paddings->set_device(convolution->device());
    PF_RETURN_IF_ERROR(BecomeFused(graph, convolution, ops::kFusedResizeAndPadConv2D, "REFLECT",
                                   {resize->input(0), resize->input(1), {paddings, 0}, convolution->input(1)},
                                   {resize}));
    convolution->SetAttr("resize_align_corners", AttrValue::Bool(align_corners));
    return absl::OkStatus();
  };
  return FuseEach(graph, ops::kResizeBilinear, context, fuse);
}

}  // namespace

// Fuses a ResizeBilinear into the Conv2D that reads it, so that the resized image is never stored.
//
//   Conv2D c(ResizeBilinear(x, size), w)   =>   FusedResizeAndPadConv2D c(x, size, Const c_dummy_paddings, w)
//
// Leaves the nodes unchanged if the ResizeBilinear has another reader or is an output, has half_pixel_centers, or reads
// images of another type than the convolution; if the convolution is NCHW or has dilations, explicit paddings or
// groups, which the fused op does not support; or if the batch is known to contain more than one image, because
// TensorFlow's kernel for the fused op computes only the first image correctly.
DEFINE_PASS(fuse_resize_and_conv) {
  return Pass<NoParams>("Fuses a ResizeBilinear into the Conv2D that reads it.")
      .Why("The resized image is never stored in memory.")
      .LooksFor({ops::kResizeBilinear})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Fuse);
}

}  // namespace permafrost
