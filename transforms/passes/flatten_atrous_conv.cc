// Replaces the three nodes of a dilated convolution written by older TensorFlow with one convolution.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/image_windows.h"

namespace permafrost {
namespace {

struct Params {
  bool dilations = false;
};

// Maximum size in bytes of an expanded filter. A filter with more zeros than this is of no practical use.
constexpr int64_t kMostBytes = 256 << 20;

// The data of a match, collected before any change.
struct Site {
  Node* convolution = nullptr;
  Node* to_batch = nullptr;
  std::vector<int64_t> block;
  Margin y, x;  // Padding of the input by all three nodes together.
  WindowForms forms;
  Shape filter_shape;  // Dimensions may be unknown only with `dilations`.
};

// Returns the block sizes at input 1: one for height and one for width.
absl::StatusOr<std::vector<int64_t>> BlockOf(const Node& node) {
  const Node* constant = node.num_data_inputs() == 3 ? ConstantBehind(node.input(1)) : nullptr;
  if (constant == nullptr) return BlockedByVariable(node, 1, "has a block shape that is not constant");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  if (value.shape() != Shape({2})) {
    return Blocked(node, absl::StrCat("has a block shape of shape ", value.shape().ToString(), ", expected [2]"));
  }
  PF_ASSIGN_OR_RETURN(std::vector<int64_t> block, IntegerValues(value));
  if (block[0] >= 1 && block[1] >= 1) return block;
  return Blocked(node, absl::StrCat("has the block shape ", absl::StrJoin(block, ",")));
}

absl::StatusOr<Margin> Cropped(const Node& node, Margin padding, Margin crop) {
  if (crop.before <= padding.before && crop.after <= padding.after) {
    return Margin{padding.before - crop.before, padding.after - crop.after};
  }
  return Blocked(node, "crops more than the SpaceToBatchND pads");
}

absl::StatusOr<Site> SiteBehind(const Node& to_space, const ShapeMap* shapes) {
  Site site;
  if (to_space.graph().IsInput(&to_space)) return BlockedByEndpoint(to_space);
  const TensorRef source = to_space.input(0);
  site.convolution = source.node;
  const Node& convolution = *source.node;
  if (convolution.op() != ops::kConv2D && convolution.op() != ops::kDepthwiseConv2dNative) {
    return NotMatched(NearMiss::Kind::kOtherOp, source,
                      absl::StrCat(convolution.Describe(), " precedes it, expected Conv2D or DepthwiseConv2dNative"));
  }
  PF_RETURN_IF_ERROR(RequireUsedOnce(convolution));
  site.to_batch = convolution.input(0).node;
  if (site.to_batch->op() != ops::kSpaceToBatchND) {
    return NotMatched(
        NearMiss::Kind::kOtherOp, convolution.input(0),
        absl::StrCat(site.to_batch->Describe(), " is the input of the convolution, expected SpaceToBatchND"));
  }
  PF_ASSIGN_OR_RETURN(site.block, BlockOf(*site.to_batch));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> block_behind, BlockOf(to_space));
  if (site.block != block_behind) {
    return Blocked(*site.to_batch,
                   absl::StrCat("has the block shape ", absl::StrJoin(site.block, ","),
                                ", not that of the BatchToSpaceND, ", absl::StrJoin(block_behind, ",")));
  }
  PF_ASSIGN_OR_RETURN(const std::vector<Margin> paddings, MarginsAt(*site.to_batch, 2, 2));
  PF_ASSIGN_OR_RETURN(const std::vector<Margin> crops, MarginsAt(to_space, 2, 2));
  PF_ASSIGN_OR_RETURN(site.y, Cropped(to_space, paddings[0], crops[0]));
  PF_ASSIGN_OR_RETURN(site.x, Cropped(to_space, paddings[1], crops[1]));

  site.filter_shape = KnownShape(convolution.input(1), shapes);
  if (!site.filter_shape.has_rank() || site.filter_shape.rank() != 4 || site.filter_shape.dim(0) < 1 ||
      site.filter_shape.dim(1) < 1) {
    return Blocked(convolution,
                   absl::StrCat("has a filter of shape ", site.filter_shape.ToString(), ", expected a known size"));
  }
  PF_ASSIGN_OR_RETURN(site.forms, WindowFormsOf(convolution, site.filter_shape.dim(0), site.filter_shape.dim(1)));
  if (site.forms.is_nchw()) return Blocked(convolution, "has the data_format NCHW, expected NHWC");
  if (site.forms.padding != "VALID") {
    return Blocked(convolution, absl::StrCat("has the padding ", site.forms.padding, ", expected VALID"));
  }
  if (site.forms.y.stride != 1 || site.forms.x.stride != 1) {
    return Blocked(convolution,
                   absl::StrCat("has the strides ", site.forms.y.stride, ",", site.forms.x.stride, ", expected 1"));
  }
  if (site.forms.is_dilated()) return Blocked(convolution, "already has dilations");
  site.forms.y.dilation = site.block[0];
  site.forms.x.dilation = site.block[1];
  return site;
}

// Returns the filter with block - 1 rows of zeros inserted between rows, and likewise between columns. Copies bytes,
// whatever the type.
absl::StatusOr<Tensor> Stuffed(const Node& convolution, const std::vector<int64_t>& block) {
  const Node* constant = ConstantBehind(convolution.input(1));
  if (constant == nullptr) {
    return Blocked(convolution, "has a filter that is not constant",
                   WayOut{"run fold_constants first, or use dilations=true"});
  }
  PF_ASSIGN_OR_RETURN(const Tensor filter, ConstValue(*constant));
  const Shape& shape = filter.shape();
  const int64_t element = static_cast<int64_t>(SizeOf(filter.dtype()));
  Shape large = shape;
  int64_t bytes = shape.dim(2) * shape.dim(3) * element;
  for (int d = 0; d < 2; ++d) {
    const int64_t size = (shape.dim(d) - 1) * block[d] + 1;  // Both factors fit in 31 bits.
    large.set_dim(d, size);
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostBytes) {
      return Blocked(convolution, absl::StrCat("would have a filter of ", large.ToString()),
                     WayOut{"use dilations=true"});
    }
  }
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor stuffed, Tensor::Allocate(filter.dtype(), large, &out));
  std::memset(out, 0, static_cast<size_t>(bytes));
  const int64_t tap = shape.dim(2) * shape.dim(3) * element;
  for (int64_t y = 0; y < shape.dim(0) && tap > 0; ++y) {
    for (int64_t x = 0; x < shape.dim(1); ++x) {
      std::memcpy(out + (y * block[0] * large.dim(1) + x * block[1]) * tap,
                  filter.bytes().data() + (y * shape.dim(1) + x) * tap, static_cast<size_t>(tap));
    }
  }
  return stuffed;
}

// Adds a Pad before `node` for a padding that no padding attribute supported by all TensorFlow versions can express.
absl::StatusOr<TensorRef> Padded(Graph* graph, Node* node, TensorRef data, Margin y, Margin x, const Node& like) {
  const std::string name = graph->UniqueName(absl::StrCat(node->name(), "_pad"));
  std::vector<int32_t> values = {0,
                                 0,
                                 static_cast<int32_t>(y.before),
                                 static_cast<int32_t>(y.after),
                                 static_cast<int32_t>(x.before),
                                 static_cast<int32_t>(x.after),
                                 0,
                                 0};
  PF_ASSIGN_OR_RETURN(Node * paddings, graph->AddConst(graph->UniqueName(absl::StrCat(name, "/paddings")),
                                                       Tensor::FromVector(Shape({4, 2}), std::move(values)), node));
  PF_ASSIGN_OR_RETURN(Node * pad, graph->AddNode(name, ops::kPad, node));
  for (Node* made : {paddings, pad}) made->set_device(like.device());
  if (const AttrValue* type = like.FindAttr("T"); type != nullptr) pad->SetAttr("T", *type);
  pad->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
  graph->AddInput(pad, data);
  graph->AddInput(pad, {paddings, 0});
  return TensorRef{pad, 0};
}

absl::Status FlattenOne(Graph* graph, Node* to_space, const Params& params, const ShapeMap* shapes,
                        PassContext* context) {
  PF_ASSIGN_OR_RETURN(const Site site, SiteBehind(*to_space, shapes));
  Node* convolution = site.convolution;
  Tensor filter;
  if (!params.dilations) {
    PF_ASSIGN_OR_RETURN(filter, Stuffed(*convolution, site.block));
  }
  const RewriteScope rewrite(context, graph,
                             {to_space, convolution, site.to_batch, ConstantBehind(convolution->input(kWeightsInput))});
  if (!rewrite) return LimitReached();
  if (!params.dilations) {
    PF_RETURN_IF_ERROR(SetConstantInput(graph, convolution, kWeightsInput, std::move(filter)));
  }
  TensorRef data = site.to_batch->input(0);
  std::string padding = PaddingFor(site.forms, site.y, site.x, Shape::UnknownRank());
  if (padding == "EXPLICIT") {
    PF_ASSIGN_OR_RETURN(data, Padded(graph, to_space, data, site.y, site.x, *convolution));
    padding = "VALID";
  }
  to_space->set_op(convolution->op());
  to_space->set_device(convolution->device());
  to_space->ClearAttrs();
  for (const char* key : {"T", "strides", "data_format", "use_cudnn_on_gpu"}) {
    if (const AttrValue* value = convolution->FindAttr(key); value != nullptr) to_space->SetAttr(key, *value);
  }
  to_space->SetAttr("padding", AttrValue::String(padding));
  if (params.dilations) {
    to_space->SetAttr("dilations", AttrValue::IntList({1, site.block[0], site.block[1], 1}));
  }
  return Absorb(graph, to_space, {data, convolution->input(1)}, {convolution, site.to_batch});
}

absl::StatusOr<int64_t> Flatten(Graph* graph, const Params& params, PassContext* context) {
  std::vector<Node*> heads;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kBatchToSpaceND && node->num_data_inputs() == 3) heads.push_back(node);
  }
  PF_ASSIGN_OR_RETURN(const int64_t rewrites,
                      RewriteEach(graph, heads, context, [&](Node* head, const ShapeMap* shapes) {
                        return FlattenOne(graph, head, params, shapes, context);
                      }));
  if (rewrites > 0) context->Note(absl::StrCat("flattened ", rewrites, " dilated convolutions"));
  return rewrites;
}

}  // namespace

// Replaces SpaceToBatchND, convolution and BatchToSpaceND by one convolution with a dilated filter.
//
//   BatchToSpaceND y(conv(SpaceToBatchND(x), w))   =>   conv y(x, w with block - 1 zeros between its taps)
//
// Applies to Conv2D and DepthwiseConv2dNative. The filter keeps its name; if it has other readers, it is left unchanged
// and the convolution reads a copy. The paddings minus the crops become the padding of the convolution: SAME, VALID, or
// a Pad named <y>_pad followed by VALID. With dilations=true the filter is left unchanged and the convolution gets the
// attribute `dilations`, which is exact, smaller and faster; TensorFlow's CPU kernels do not support it for
// DepthwiseConv2dNative.
//
// Leaves the convolution unchanged if it has another reader or is an output; if it has strides, dilations, a padding
// other than VALID or data_format NCHW; if block shapes, paddings or crops are not constant or inconsistent; or if the
// dilated filter would exceed 256 MB.
DEFINE_PASS(flatten_atrous_conv) {
  return Pass<Params>("Replaces SpaceToBatchND, convolution and BatchToSpaceND by one dilated convolution.")
      .Why(
          "Exporters write a dilated convolution as three nodes, two of which only move data. One convolution needs no "
          "copies and does not depend on the other two ops.")
      .Param("dilations", &Params::dilations,
             "Set the attribute `dilations` of the convolution instead of inserting zeros into its filter.")
      .LooksFor({ops::kBatchToSpaceND})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Flatten);
}

}  // namespace permafrost
