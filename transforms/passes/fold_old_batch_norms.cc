// Folds batch norms into the convolutions before or after them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/batch_norm.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

// A convolution that can take over a scale and an offset, with the BiasAdd after it, if any.
struct Site {
  Node* convolution = nullptr;
  Node* bias = nullptr;  // Null, or the BiasAdd.
  Tensor weights;
  Tensor bias_values;
  Channels channels;
};

// Returns the nodes of folding `norm` into the sites, the one that keeps its place first.
std::vector<const Node*> Matched(const Node& norm, const Node* carrier, absl::Span<const Site> sites) {
  std::vector<const Node*> nodes = {&norm, carrier};
  for (const Site& site : sites) {
    nodes.insert(nodes.end(), {site.convolution, site.bias, ConstantBehind(site.convolution->input(kWeightsInput))});
    if (site.bias != nullptr) nodes.push_back(ConstantBehind(site.bias->input(1)));
  }
  for (const Node* parameter : ParametersOf(norm)) nodes.push_back(parameter);
  return nodes;
}

// Checks that the channels of a rank-4 result are in dimension `channel_dim` in each node on the path.
absl::Status RequireChannelDim(const Node& node, int channel_dim) {
  PF_ASSIGN_OR_RETURN(const ChannelDim found, ChannelDimOf(node));
  if (found.dim == channel_dim && found.rank == 4) return absl::OkStatus();
  if (found.rank == 2 && channel_dim == 3) return absl::OkStatus();  // Last in both.
  return Blocked(node, "has another data_format than the batch norm");
}

// Returns the producer of `ref` as a site, if it is a convolution, or a BiasAdd of one, without other readers.
absl::StatusOr<Site> SiteBehind(TensorRef ref, int channel_dim) {
  Site site;
  PF_RETURN_IF_ERROR(RequireUsedOnce(*ref.node));
  if (ref.node->op() == ops::kBiasAdd && ref.node->num_data_inputs() == 2) {
    site.bias = ref.node;
    const Node* constant = ConstantBehind(site.bias->input(1));
    if (constant == nullptr) {
      return NotMatched(NearMiss::Kind::kNotConstant, site.bias->input(1),
                        absl::StrCat(site.bias->Describe(), " adds a bias that is not constant"));
    }
    PF_ASSIGN_OR_RETURN(site.bias_values, ConstValue(*constant));
    PF_RETURN_IF_ERROR(RequireChannelDim(*site.bias, channel_dim));
    ref = site.bias->input(0);
    PF_RETURN_IF_ERROR(RequireUsedOnce(*ref.node));
  }
  site.convolution = ref.node;
  if (!IsConvolution(site.convolution->op())) {
    return NotMatched(NearMiss::Kind::kOtherOp, ref,
                      absl::StrCat(site.convolution->Describe(), " is not a convolution"));
  }
  PF_RETURN_IF_ERROR(RequireChannelDim(*site.convolution, channel_dim));
  PF_ASSIGN_OR_RETURN(site.weights, WeightsOf(*site.convolution));
  PF_ASSIGN_OR_RETURN(site.channels, OutputChannels(*site.convolution, site.weights.shape()));
  if (site.bias != nullptr &&
      (site.bias_values.dtype() != DType::kFloat || site.bias_values.shape() != Shape({site.channels.count}))) {
    return Blocked(*site.bias, "adds a bias that is not one float for each channel");
  }
  return site;
}

// Scales the weights of the site and returns the new bias.
absl::StatusOr<Tensor> ScaleSite(Graph* graph, const Site& site, absl::Span<const float> scale,
                                 absl::Span<const float> offset, int num_threads) {
  PF_ASSIGN_OR_RETURN(Tensor weights, ScaleChannels(site.weights, site.channels, scale, num_threads));
  PF_RETURN_IF_ERROR(SetConstantInput(graph, site.convolution, kWeightsInput, std::move(weights)));
  std::vector<float> bias(offset.begin(), offset.end());
  if (site.bias != nullptr) {
    for (size_t i = 0; i < bias.size(); ++i) bias[i] += site.bias_values.elements<float>()[i] * scale[i];
  }
  return Tensor::FromVector(Shape({site.channels.count}), std::move(bias));
}

// Turns `node` into the BiasAdd of `convolution` and a new Const `<name>_bn_offset`.
absl::Status MakeBiasAdd(Graph* graph, Node* node, Node* convolution, absl::string_view name, Tensor bias) {
  PF_ASSIGN_OR_RETURN(Node * offset,
                      graph->AddConst(graph->UniqueName(absl::StrCat(name, "_bn_offset")), std::move(bias), node));
  offset->set_device(convolution->device());
  std::vector<Node*> controls;
  for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) controls.push_back(node->input(i).node);
  graph->ClearInputs(node);
  graph->AddInput(node, {convolution, 0});
  graph->AddInput(node, {offset, 0});
  for (Node* control : controls) graph->AddControlInput(node, control);
  node->set_op(ops::kBiasAdd);
  node->ClearAttrs();
  node->SetAttr("T", AttrValue::Type(DType::kFloat));
  if (const AttrValue* format = convolution->FindAttr("data_format"); format != nullptr) {
    node->SetAttr("data_format", *format);
  }
  return absl::OkStatus();
}

// Removes the BiasAdd that is merged into another, and passes its control inputs on.
absl::Status RemoveOldBias(Graph* graph, Node* old, Node* successor) {
  if (old == nullptr) return absl::OkStatus();
  for (int i = old->num_data_inputs(); i < old->num_inputs(); ++i)
    graph->AddControlInput(successor, old->input(i).node);
  Node* constant = old->input(1).node;
  PF_RETURN_IF_ERROR(graph->RemoveNode(old));
  RemoveUnusedConstant(graph, constant);
  return absl::OkStatus();
}

// Rewrites norm(conv(x, w))  =>  BiasAdd(conv(x, w * scale), offset), under the name of the batch norm.
absl::Status FoldIntoProducer(Graph* graph, Node* norm, const BatchNorm& affine, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const Site site, SiteBehind(norm->input(0), affine.channel_dim));
  if (site.channels.count != static_cast<int64_t>(affine.scale.size())) {
    return Blocked(*site.convolution,
                   absl::StrCat("has ", site.channels.count, " channels, expected ", affine.scale.size()));
  }
  const RewriteScope rewrite(context, graph, Matched(*norm, nullptr, {site}));
  if (!rewrite) return LimitReached();
  PF_ASSIGN_OR_RETURN(Tensor bias, ScaleSite(graph, site, affine.scale, affine.offset, context->num_threads));
  PF_RETURN_IF_ERROR(MakeBiasAdd(graph, norm, site.convolution, site.convolution->name(), std::move(bias)));
  return RemoveOldBias(graph, site.bias, norm);
}

// Inserts a BiasAdd called `name` between the site and input `index` of `consumer`.
absl::Status InsertBias(Graph* graph, const Site& site, Node* consumer, int index, absl::string_view name,
                        Tensor bias) {
  PF_ASSIGN_OR_RETURN(Node * added, graph->AddNode(graph->UniqueName(name), ops::kBiasAdd, consumer));
  added->set_device(site.convolution->device());
  PF_RETURN_IF_ERROR(MakeBiasAdd(graph, added, site.convolution, site.convolution->name(), std::move(bias)));
  graph->SetInput(consumer, index, {added, 0});
  return RemoveOldBias(graph, site.bias, added);
}

// Checks that `carrier` keeps each value in its channel, the last dimension of its input and its output.
absl::Status RequireKeepsChannels(const Node& carrier, const BatchNorm& affine) {
  const Node* constant = carrier.num_data_inputs() > 1 ? ConstantBehind(carrier.input(1)) : nullptr;
  if (constant == nullptr) {
    return NotMatched(NearMiss::Kind::kNotConstant, carrier.num_data_inputs() > 1 ? carrier.input(1) : TensorRef(),
                      absl::StrCat(carrier.Describe(), " has a shape that is not constant"));
  }
  PF_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*constant));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerValues(tensor));
  const bool keeps = carrier.op() == ops::kBatchToSpaceND
                         ? values.size() <= 2
                         : !values.empty() && values.back() == static_cast<int64_t>(affine.scale.size());
  if (keeps && affine.channel_dim == 3) return absl::OkStatus();
  return Blocked(carrier, "moves channels");
}

// Rewrites norm(BatchToSpaceND(conv))  =>  BatchToSpaceND(BiasAdd(conv)), and likewise for the Reshape of a MatMul.
absl::Status FoldIntoCarried(Graph* graph, Node* norm, const BatchNorm& affine, PassContext* context) {
  Node* carrier = norm->input(0).node;
  PF_RETURN_IF_ERROR(RequireUsedOnce(*carrier));
  PF_RETURN_IF_ERROR(RequireKeepsChannels(*carrier, affine));
  PF_ASSIGN_OR_RETURN(const Site site, SiteBehind(carrier->input(0), affine.channel_dim));
  if (site.channels.count != static_cast<int64_t>(affine.scale.size())) {
    return Blocked(*site.convolution,
                   absl::StrCat("has ", site.channels.count, " channels, expected ", affine.scale.size()));
  }
  const RewriteScope rewrite(context, graph, Matched(*norm, carrier, {site}));
  if (!rewrite) return LimitReached();
  PF_ASSIGN_OR_RETURN(Tensor bias, ScaleSite(graph, site, affine.scale, affine.offset, context->num_threads));
  const std::string name = absl::StrCat(site.convolution->name(), "/biasadd");
  PF_RETURN_IF_ERROR(InsertBias(graph, site, carrier, 0, name, std::move(bias)));
  return TakeOver(graph, norm, carrier);
}

// Rewrites norm(Concat(conv, conv ...))  =>  Concat(BiasAdd(conv), BiasAdd(conv) ...).
absl::Status FoldIntoConcat(Graph* graph, Node* norm, const BatchNorm& affine, PassContext* context) {
  Node* concat = norm->input(0).node;
  PF_RETURN_IF_ERROR(RequireUsedOnce(*concat));
  const bool axis_first = concat->op() == ops::kConcat;
  const int parts = concat->num_data_inputs() - 1;
  if (parts < 1) return Blocked(*concat, "has no inputs");
  const Node* axis_node = ConstantBehind(concat->input(axis_first ? 0 : parts));
  if (axis_node == nullptr) return Blocked(*concat, "has an axis that is not constant");
  PF_ASSIGN_OR_RETURN(const Tensor axis_tensor, ConstValue(*axis_node));
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> axis_values, IntegerValues(axis_tensor));
  if (axis_values.size() != 1 || axis_values[0] < -4 || axis_values[0] > 3) return Blocked(*concat, "has a bad axis");
  const bool along_channels = (axis_values[0] + 4) % 4 == affine.channel_dim;

  // All sites are checked before any change.
  std::vector<Site> sites(parts);
  int64_t total = 0;
  const int64_t channels = static_cast<int64_t>(affine.scale.size());
  for (int i = 0; i < parts; ++i) {
    PF_ASSIGN_OR_RETURN(sites[i], SiteBehind(concat->input(i + (axis_first ? 1 : 0)), affine.channel_dim));
    total += sites[i].channels.count;
    if (!along_channels && sites[i].channels.count != channels) return Blocked(*concat, "joins different channels");
  }
  if (along_channels && total != channels) {
    return Blocked(*concat, absl::StrCat("has ", total, " channels, expected ", channels));
  }
  const RewriteScope rewrite(context, graph, Matched(*norm, concat, sites));
  if (!rewrite) return LimitReached();
  const std::string name(concat->name());
  int64_t start = 0;
  for (int i = 0; i < parts; ++i) {
    const size_t count = static_cast<size_t>(sites[i].channels.count);
    const auto scale = absl::MakeConstSpan(affine.scale).subspan(start, count);
    const auto offset = absl::MakeConstSpan(affine.offset).subspan(start, count);
    PF_ASSIGN_OR_RETURN(Tensor bias, ScaleSite(graph, sites[i], scale, offset, context->num_threads));
    PF_RETURN_IF_ERROR(InsertBias(graph, sites[i], concat, i + (axis_first ? 1 : 0), absl::StrCat(name, "_bn_in", i),
                                  std::move(bias)));
    if (along_channels) start += sites[i].channels.count;
  }
  return TakeOver(graph, norm, concat);
}

// Returns true if the convolution does not pad its data. Padding zeros would not receive the offset.
absl::StatusOr<bool> ReadsNoPadding(const Node& convolution, const Shape& weights) {
  if (convolution.op() == ops::kMatMul) return true;
  const bool is_single_point = weights.dim(0) == 1 && weights.dim(1) == 1;
  if (convolution.op() == ops::kConv2DBackpropInput) {
    // Strides insert zeros between the values, and any kernel larger than one point reaches over the border.
    PF_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntListAttr(convolution, "strides"));
    return is_single_point && std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
  }
  PF_ASSIGN_OR_RETURN(const std::string padding, StringAttr(convolution, "padding"));
  if (padding == "VALID") return true;
  if (padding == "SAME") return is_single_point;
  PF_ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, IntListAttr(convolution, "explicit_paddings"));
  return std::all_of(paddings.begin(), paddings.end(), [](int64_t amount) { return amount == 0; });
}

// Returns the sum that `offset` on all data elements adds to each channel of the result.
std::vector<float> OffsetOfResult(const Tensor& weights, Channels in, Channels out, absl::Span<const float> offset) {
  std::vector<double> sums(out.count, 0.0);
  const UnalignedSpan<float> values = weights.elements<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i / out.inner % out.count] += static_cast<double>(values[i]) * offset[i / in.inner % in.count];
  }
  return std::vector<float>(sums.begin(), sums.end());
}

// Rewrites conv(norm(x), w)  =>  BiasAdd(conv(x, w * scale), the sum of w * offset), under the name of the convolution.
absl::Status FoldIntoConsumer(Graph* graph, Node* norm, const BatchNorm& affine, PassContext* context) {
  PF_RETURN_IF_ERROR(RequireUsedOnce(*norm));
  Node* convolution = norm->uses()[0].consumer;
  const TensorRef data = norm->input(0);
  const int data_input = DataInput(convolution->op());
  if (!IsConvolution(convolution->op())) {
    return NotMatched(NearMiss::Kind::kOtherOp, {convolution, 0},
                      absl::StrCat(convolution->Describe(), " is not a convolution"));
  }
  if (convolution->input(norm->uses()[0].index).is_control() ||
      norm->uses()[0].index != static_cast<uint32_t>(data_input)) {
    return Blocked(*convolution, "does not read the batch norm as its data");
  }
  if (graph->IsInput(convolution)) return BlockedByEndpoint(*convolution);
  PF_RETURN_IF_ERROR(RequireChannelDim(*convolution, affine.channel_dim));
  PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(*convolution));
  PF_ASSIGN_OR_RETURN(const Channels in, InputChannels(*convolution, weights.shape()));
  PF_ASSIGN_OR_RETURN(const Channels out, OutputChannels(*convolution, weights.shape()));
  if (in.count != static_cast<int64_t>(affine.scale.size())) {
    return Blocked(*convolution, absl::StrCat("has ", in.count, " channels per group, expected ", affine.scale.size()));
  }
  const bool has_offset =
      std::any_of(affine.offset.begin(), affine.offset.end(), [](float value) { return !(value == 0.0f); });
  if (has_offset) {
    PF_ASSIGN_OR_RETURN(const bool is_exact, ReadsNoPadding(*convolution, weights.shape()));
    if (!is_exact) return Blocked(*convolution, "pads with zeros, to which the offset does not apply");
  }
  std::vector<const Node*> matched = {convolution, norm, ConstantBehind(convolution->input(kWeightsInput))};
  for (const Node* parameter : ParametersOf(*norm)) matched.push_back(parameter);
  const RewriteScope rewrite(context, graph, matched);
  if (!rewrite) return LimitReached();
  PF_ASSIGN_OR_RETURN(Tensor scaled, ScaleChannels(weights, in, affine.scale, context->num_threads));
  PF_RETURN_IF_ERROR(SetConstantInput(graph, convolution, kWeightsInput, std::move(scaled)));
  graph->SetInput(convolution, data_input, data);
  for (int i = norm->num_data_inputs(); i < norm->num_inputs(); ++i) {
    graph->AddControlInput(convolution, norm->input(i).node);
  }
  PF_RETURN_IF_ERROR(graph->RemoveNode(norm));
  if (!has_offset) return absl::OkStatus();

  // The BiasAdd gets the convolution's name, since it has the value that the convolution had.
  Tensor bias = Tensor::FromVector(Shape({out.count}), OffsetOfResult(weights, in, out, affine.offset));
  const std::string name(convolution->name());
  PF_ASSIGN_OR_RETURN(Node * inner, graph->AddNode(graph->UniqueName(absl::StrCat(name, "_without_bias")),
                                                   convolution->op(), convolution));
  inner->CopyAttrs(*convolution);
  inner->set_device(convolution->device());
  for (int i = 0; i < convolution->num_inputs(); ++i) graph->AddInput(inner, convolution->input(i));
  return MakeBiasAdd(graph, convolution, inner, name, std::move(bias));
}

absl::Status FoldOne(Graph* graph, Node* norm, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const BatchNorm affine, BatchNormOf(*norm));
  PF_RETURN_IF_ERROR(CheckFinite(affine.scale));
  const TensorRef data = norm->input(0);
  if (graph->IsInput(norm)) return BlockedByEndpoint(*norm);
  absl::Status before;
  if (data.port != 0) {
    before = Blocked(*data.node, absl::StrCat("is read at output ", data.port));
  } else if (data.node->op() == ops::kBatchToSpaceND || data.node->op() == ops::kReshape) {
    before = FoldIntoCarried(graph, norm, affine, context);
  } else if (data.node->op() == ops::kConcatV2 || data.node->op() == ops::kConcat) {
    before = FoldIntoConcat(graph, norm, affine, context);
  } else {
    before = FoldIntoProducer(graph, norm, affine, context);
  }
  if (!absl::IsFailedPrecondition(before)) return before;
  const absl::Status behind = FoldIntoConsumer(graph, norm, affine, context);
  if (!absl::IsFailedPrecondition(behind)) return behind;
  // The batch norm usually belongs to the node before it.
  const NearMiss near_miss = NearMissOf(before, *graph);
  return NotMatched(
      near_miss.kind, near_miss.found,
      absl::StrCat("with the preceding node, ", before.message(), "; with the following node, ", behind.message()));
}

absl::StatusOr<int64_t> Fold(Graph* graph, const NoParams&, PassContext* context) {
  int64_t rewrites = 0;
  // After a batch norm is folded, a batch norm that follows it has a BiasAdd before it. The order of the file suffices
  // if it is topological; otherwise the following batch norms are visited again.
  std::vector<std::string> pending;
  for (const Node* node = graph->last(); node != nullptr; node = node->previous()) {
    if (IsBatchNorm(node->op())) pending.emplace_back(node->name());
  }
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    Node* norm = graph->Find(name);
    if (norm == nullptr || !IsBatchNorm(norm->op())) continue;  // Already folded.
    const std::vector<Node*> parameters = ParametersOf(*norm);
    std::vector<std::string> behind;
    for (const Use& use : norm->uses()) {
      if (IsBatchNorm(use.consumer->op())) behind.emplace_back(use.consumer->name());
    }
    // The parameters' values continue in the norm or, if it is removed, in its reader.
    const OriginScope origins(graph, {norm, norm->uses().empty() ? nullptr : norm->uses()[0].consumer});
    const absl::Status status = FoldOne(graph, norm, context);
    if (absl::IsCancelled(status)) continue;
    if (absl::IsFailedPrecondition(status)) {
      context->Miss(*norm, status);
      continue;
    }
    PF_RETURN_IF_ERROR(status);
    for (Node* parameter : parameters) RemoveUnusedConstant(graph, parameter);
    ++rewrites;
    pending.insert(pending.end(), behind.begin(), behind.end());
  }
  if (rewrites > 0) {
    DropDanglingColocations(graph);
    context->Note(absl::StrCat("folded ", rewrites, " batch norms"));
  }
  return rewrites;
}

}  // namespace

// Folds BatchNormWithGlobalNormalization, FusedBatchNorm, FusedBatchNormV2 and FusedBatchNormV3 into Conv2D,
// DepthwiseConv2dNative, Conv2DBackpropInput and MatMul.
//
//   norm n(conv c(x, w))                          =>   BiasAdd n(conv c(x, w * scale), Const c_bn_offset)
//   norm n(BiasAdd(conv c(x, w), b))              =>   the same, with b * scale in the offset
//   norm n(BatchToSpaceND(conv c))                =>   BatchToSpaceND n(BiasAdd c/biasadd(conv c))
//   norm n(Reshape(MatMul m))                     =>   Reshape n(BiasAdd m/biasadd(MatMul m))
//   norm n(Concat k(conv, conv ...))              =>   Concat n(BiasAdd k_bn_in0(conv), BiasAdd k_bn_in1(conv) ...)
//   conv c(norm(x), w)                            =>   BiasAdd c(conv c_without_bias(x, w * scale), Const c_bn_offset)
//
// Constants with other readers are copied. Constants may be read through Identity nodes.
//
// Leaves a norm unchanged if is_training is true; if its other outputs are read; if its parameters or the weights are
// not float constants; if the resulting factor is not finite (variance 0 with epsilon 0); if a node between norm and
// convolution has another reader or is an output; or if the data formats differ. A norm before a convolution is also
// left unchanged if the convolution pads with zeros, to which the offset would not apply.
DEFINE_PASS(fold_old_batch_norms) {
  return Pass<NoParams>("Folds batch norms into the weights of the preceding or following convolutions.")
      .Why(
          "In a trained model, a batch norm scales and shifts each channel, which has no run-time cost once it is part "
          "of the weights and the bias.")
      .Numerics(Within(1e-4))
      .Idempotent()
      .LooksFor({ops::kBatchNormWithGlobalNormalization, ops::kFusedBatchNorm, ops::kFusedBatchNormV2,
                 ops::kFusedBatchNormV3})
      .Run(Fold);
}

}  // namespace permafrost
