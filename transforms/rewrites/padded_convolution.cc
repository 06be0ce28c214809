// Fuses the node before a Conv2D into it.
#include "transforms/rewrites/padded_convolution.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/image_windows.h"

namespace permafrost {

absl::Status RequireFusable(const Node& convolution, const ShapeMap* shapes) {
  if (convolution.graph().IsInput(&convolution)) return BlockedByEndpoint(convolution);
  PF_ASSIGN_OR_RETURN(const WindowForms forms, WindowFormsOf(convolution, 1, 1));
  if (forms.is_nchw()) return Blocked(convolution, "has the data_format NCHW, expected NHWC");
  if (forms.is_dilated()) return Blocked(convolution, "has dilations");
  if (forms.padding == "EXPLICIT") return Blocked(convolution, "has explicit paddings");
  const Shape image = KnownShape(convolution.input(0), shapes), filter = KnownShape(convolution.input(1), shapes);
  if (image.has_rank() && image.rank() == 4 && image.dim(0) > 1) {
    return Blocked(convolution, absl::StrCat("has a batch of ", image.dim(0),
                                             " images, of which TensorFlow's fused op computes only the first right"));
  }
  if (!image.has_rank() || !filter.has_rank() || image.rank() != 4 || filter.rank() != 4) return absl::OkStatus();
  const int64_t channels = image.dim(3), expected = filter.dim(2);
  if (channels == kUnknownDim || expected == kUnknownDim || channels == expected) return absl::OkStatus();
  return Blocked(convolution, absl::StrCat("has groups: ", channels, " channels and a filter for ", expected));
}

absl::Status RequireAbsorbablePad(const Node& pad) {
  PF_RETURN_IF_ERROR(RequireUsedOnce(pad));
  PF_ASSIGN_OR_RETURN(const std::vector<Margin> margins, MarginsAt(pad, 1, 4));
  if (margins[0].is_zero() && margins[3].is_zero()) return absl::OkStatus();
  return Blocked(pad, "pads the batch or the channels");
}

absl::Status RequireAbsorbableResize(const Node& resize, const Node& convolution) {
  PF_RETURN_IF_ERROR(RequireUsedOnce(resize));
  PF_ASSIGN_OR_RETURN(const bool half_pixel_centers, BoolAttr(resize, "half_pixel_centers"));
  if (half_pixel_centers) return Blocked(resize, "has half_pixel_centers, which the fused op lacks");
  PF_ASSIGN_OR_RETURN(const DType images, TypeAttr(resize, "T"));
  PF_ASSIGN_OR_RETURN(const DType expected, TypeAttr(convolution, "T"));
  if (images == expected) return absl::OkStatus();
  return Blocked(resize, absl::StrCat("has images of type ", DTypeName(images), ", expected that of the convolution, ",
                                      DTypeName(expected)));
}

absl::StatusOr<TensorRef> PaddingsFor(Graph* graph, const Node& pad, Node* convolution) {
  const TensorRef given = pad.input(1);
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*ConstantBehind(given)));
  if (value.dtype() == DType::kInt32) return given;
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> wide, IntegerValues(value));
  std::vector<int32_t> values(wide.begin(), wide.end());  // MarginsAt has checked the range.
  PF_ASSIGN_OR_RETURN(Node * made, graph->AddConst(graph->UniqueName(absl::StrCat(convolution->name(), "_paddings")),
                                                   Tensor::FromVector(value.shape(), std::move(values)), convolution));
  made->set_device(convolution->device());
  return TensorRef{made, 0};
}

absl::Status BecomeFused(Graph* graph, Node* convolution, Op op, absl::string_view mode,
                         absl::Span<const TensorRef> inputs, absl::Span<Node* const> absorbed) {
  std::vector<std::pair<const char*, AttrValue>> kept;
  for (const char* key : {"T", "padding", "strides"}) {
    if (const AttrValue* value = convolution->FindAttr(key); value != nullptr) kept.emplace_back(key, *value);
  }
  convolution->set_op(op);
  convolution->ClearAttrs();
  for (auto& [key, value] : kept) convolution->SetAttr(key, std::move(value));
  convolution->SetAttr("mode", AttrValue::String(mode));
  return Absorb(graph, convolution, inputs, absorbed);
}

absl::StatusOr<int64_t> FuseEach(Graph* graph, Op before, PassContext* context,
                                 absl::FunctionRef<absl::Status(Node* convolution, const ShapeMap* shapes)> fuse) {
  std::vector<Node*> heads;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConv2D || node->num_data_inputs() != 2) continue;
    const TensorRef data = node->input(0);
    if (data.port != 0) continue;
    if (data.node->op() == before) {
      heads.push_back(node);
    } else if (data.node->op() == ops::kIdentity && data.node->input(0).node->op() == before) {
      context->Miss(*node,
                    NotMatched(NearMiss::Kind::kOtherOp, data,
                               absl::StrCat("reads a ", before.name(), ", but through ", data.node->Describe())));
    } else if (before == ops::kMirrorPad && (data.node->op() == ops::kPad || data.node->op() == ops::kPadV2)) {
      context->MissIfWanted(*node, WayOut{"run fold_pad_into_conv"}, "reads ", data.node->Describe(),
                            ", expected a MirrorPad");
    }
  }
  return RewriteEach(graph, heads, context, fuse);
}

}  // namespace permafrost
