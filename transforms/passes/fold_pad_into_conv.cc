// Moves the padding of inputs into convolutions and poolings.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/image_windows.h"

namespace permafrost {
namespace {

struct Params {
  bool explicit_depthwise = false;
};

bool IsPad(Op op) { return op == ops::kPad || op == ops::kPadV2; }

bool CanPad(Op op) {
  return op == ops::kConv2D || op == ops::kDepthwiseConv2dNative || op == ops::kMaxPool || op == ops::k_FusedConv2D ||
         op == ops::k_FusedDepthwiseConv2dNative;
}

// Returns the only element of a floating-point constant, as a double. Returns FailedPrecondition otherwise.
absl::StatusOr<double> ConstantNumber(const Node& pad) {
  const Node* constant = pad.num_data_inputs() == 3 ? ConstantBehind(pad.input(2)) : nullptr;
  if (constant == nullptr) return BlockedByVariable(pad, 2, "pads with a value that is not constant");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  double number = std::nan("");
  const bool is_known =
      value.num_elements() == 1 && DispatchOn<float, double, Half, BFloat16>(value.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          number = ToFloat(value.elements<T>()[0]);
        } else {
          number = value.elements<T>()[0];
        }
      });
  if (is_known) return number;
  return Blocked(pad, "pads with a value that is not one floating-point number");
}

// Checks that `node` would pad its input with the same value as `pad` does.
absl::Status RequireSameValue(const Node& node, const Node& pad) {
  double value = 0;
  if (pad.op() == ops::kPadV2) {
    PF_ASSIGN_OR_RETURN(value, ConstantNumber(pad));
  }
  if (node.op() != ops::kMaxPool) {
    return value == 0 ? absl::OkStatus() : Blocked(pad, absl::StrCat("pads with ", value, ", expected 0"));
  }
  if (value == -std::numeric_limits<double>::infinity()) return absl::OkStatus();
  return Blocked(pad, absl::StrCat("pads with ", value, ", expected -inf before a MaxPool"));
}

absl::StatusOr<WindowForms> FormsOf(const Node& node, const ShapeMap* shapes) {
  if (node.op() == ops::kMaxPool) {
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(node, "data_format"));
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntListAttr(node, "ksize"));
    const int height = format == "NCHW" ? 2 : 1;
    if (size.size() != 4 || size[0] != 1 || size[format == "NCHW" ? 1 : 3] != 1) {
      return Blocked(node, "has a window over the batch or the channels");
    }
    return WindowFormsOf(node, size[height], size[height + 1]);
  }
  const Shape filter = KnownShape(node.input(1), shapes);
  if (!filter.has_rank() || filter.rank() != 4) return Blocked(node, "has a filter of unknown size");
  return WindowFormsOf(node, filter.dim(0), filter.dim(1));
}

// Returns the padding that the node itself adds to an axis of its input.
absl::StatusOr<Margin> OwnPadding(const Node& node, const WindowForms& forms, const WindowForm& axis,
                                  const Shape& image) {
  if (forms.padding == "VALID") return Margin();
  if (forms.padding == "EXPLICIT") return axis.explicit_padding;
  const int64_t size = image.has_rank() && image.rank() == 4 ? image.dim(axis.dim) : kUnknownDim;
  Margin margin;
  if (axis.SamePadding(size, &margin)) return margin;
  return Blocked(node, "has strides and the padding SAME over an image whose size is not known",
                 WayOut{"give the input a fixed size"});
}

Margin Sum(Margin a, Margin b) { return {a.before + b.before, a.after + b.after}; }

absl::Status FoldOne(Graph* graph, Node* node, Node* pad, const Params& params, const ShapeMap* shapes,
                     PassContext* context) {
  if (graph->IsInput(node)) return BlockedByEndpoint(*node);
  PF_RETURN_IF_ERROR(RequireSameValue(*node, *pad));
  PF_ASSIGN_OR_RETURN(const std::vector<Margin> added, MarginsAt(*pad, 1, 4));
  PF_ASSIGN_OR_RETURN(const WindowForms forms, FormsOf(*node, shapes));
  if (!added[0].is_zero() || !added[forms.channel_dim].is_zero()) {
    return Blocked(*pad, "pads the batch or the channels");
  }
  const Shape padded = KnownShape(node->input(0), shapes), image = KnownShape(pad->input(0), shapes);
  PF_ASSIGN_OR_RETURN(const Margin own_y, OwnPadding(*node, forms, forms.y, padded));
  PF_ASSIGN_OR_RETURN(const Margin own_x, OwnPadding(*node, forms, forms.x, padded));
  const Margin y = Sum(added[forms.y.dim], own_y), x = Sum(added[forms.x.dim], own_x);
  for (const int64_t side : {y.before, y.after, x.before, x.after}) {
    if (side > std::numeric_limits<int32_t>::max())
      return Blocked(*pad, absl::StrCat("would make a padding of ", side));
  }
  const std::string padding = PaddingFor(forms, y, x, image);
  if (padding == "EXPLICIT" && node->op() == ops::k_FusedDepthwiseConv2dNative) {
    return Blocked(*node, "has no explicit paddings, and no other padding is equivalent");
  }
  if (padding == "EXPLICIT" && node->op() == ops::kDepthwiseConv2dNative && !params.explicit_depthwise) {
    return Blocked(*node, "would have explicit paddings, with which TensorFlow may abort",
                   WayOut{"use explicit_depthwise=true"});
  }
  if (node->op() == ops::kMaxPool) {
    // A window that covers only padding has no maximum.
    for (const auto& [margin, kernel] : {std::make_pair(y, forms.y.kernel), std::make_pair(x, forms.x.kernel)}) {
      if (margin.before >= kernel || margin.after >= kernel) {
        return Blocked(*pad, absl::StrCat("pads as much as the window of ", kernel, " is long"));
      }
    }
  }
  const RewriteScope rewrite(context, graph, {node, pad});
  if (!rewrite) return LimitReached();
  SetPadding(node, forms, y, x, image);
  std::vector<TensorRef> inputs = {pad->input(0)};
  for (int i = 1; i < node->num_data_inputs(); ++i) inputs.push_back(node->input(i));
  return Absorb(graph, node, inputs, {pad});
}

absl::StatusOr<int64_t> Fold(Graph* graph, const Params& params, PassContext* context) {
  std::vector<Node*> heads;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (!CanPad(node->op()) || node->num_data_inputs() < 1) continue;
    const TensorRef data = node->input(0);
    if (data.port != 0) continue;
    if (IsPad(data.node->op())) heads.push_back(node);
    if (data.node->op() == ops::kMirrorPad) {
      context->MissIfWanted(*node, WayOut{node->op() == ops::kConv2D ? "run fuse_pad_and_conv" : ""}, "reads ",
                            data.node->Describe(), ", which pads with the image, not with zeros");
    }
    if (data.node->op() == ops::kIdentity && IsPad(data.node->input(0).node->op())) {
      context->Miss(*node, NotMatched(NearMiss::Kind::kOtherOp, data,
                                      absl::StrCat("reads a Pad, but through ", data.node->Describe())));
    }
  }
  if (heads.empty()) return 0;
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  if (!shapes.ok()) context->Note(absl::StrCat("without shapes, since ", shapes.status().message()));
  int64_t rewrites = 0;
  for (Node* head : heads) {
    // Several Pads may follow each other.
    for (;;) {
      const TensorRef data = head->input(0);
      if (data.port != 0 || !IsPad(data.node->op())) break;
      const absl::Status status = FoldOne(graph, head, data.node, params, shapes.ok() ? &*shapes : nullptr, context);
      PF_ASSIGN_OR_RETURN(const bool is_folded, IsRewritten(status, *head, context));
      if (!is_folded) break;
      ++rewrites;
    }
  }
  if (rewrites > 0) {
    DropDanglingColocations(graph);
    context->Note(absl::StrCat("folded ", rewrites, " paddings"));
  }
  return rewrites;
}

}  // namespace

// Folds a Pad with zeros into the padding of the convolution that reads it, and a Pad with -inf into the padding of a
// MaxPool.
//
//   conv c(Pad(x, paddings), w)   =>   conv c(x, w), with padding SAME where equivalent, otherwise EXPLICIT
//
// Applies to Conv2D, _FusedConv2D and MaxPool, and to DepthwiseConv2dNative and _FusedDepthwiseConv2dNative if the
// padding can be expressed as SAME or VALID; to Pad and PadV2, and to several Pads in a row. The existing padding of
// the convolution is added. SAME padding with strides depends on the size of the image; if the size is unknown, the
// paddings become explicit. A Pad with other readers is kept for them.
//
// With explicit_depthwise=true, DepthwiseConv2dNative gets explicit paddings as well. TensorFlow's kernels support
// them, but TensorFlow 2.21 aborts if its optimizer fuses such a node with a following bias, as it does by default on
// x86.
//
// Leaves a Pad unchanged if the paddings or the value are not constant; if it pads batch or channels; if the value is
// another one (a MaxPool ignores only -inf: zeros would exceed negative values); if the convolution has SAME padding
// and strides and the image size is unknown; or, before a MaxPool, if a window would lie completely in the padding.
DEFINE_PASS(fold_pad_into_conv) {
  return Pass<Params>("Folds a Pad into the padding of the convolution or MaxPool that reads it.")
      .Why("A Pad copies the whole image; a convolution with padding reads the original.")
      .Param("explicit_depthwise", &Params::explicit_depthwise,
             "Also give depthwise convolutions explicit paddings, on which some TensorFlow versions abort.")
      .LooksFor({ops::kPad, ops::kPadV2})
      .Numerics(Exact())
      .Idempotent()
      .Run(Fold);
}

}  // namespace permafrost
