// Folds a constant per-channel Mul into the weights before it.
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"

namespace permafrost {
namespace {

enum Label { kConvolution, kFactor };

const Pattern& ScaledConvolution() {
  static const auto* const pattern = new Pattern(
      Pattern::OneOf({ops::kMul})
          .InAnyOrder(
              Pattern::OneOf({ops::kConv2D, ops::kDepthwiseConv2dNative, ops::kConv2DBackpropInput, ops::kMatMul})
                  .As(kConvolution)
                  .UsedOnce()
                  .Input(kWeightsInput, Pattern::Constant()),
              Pattern::Constant().As(kFactor)));
  return *pattern;
}

struct Scaling {
  Channels channels;
  Tensor weights;
  std::vector<float> scale;
};

absl::StatusOr<Scaling> ScalingOf(const Node& convolution, TensorRef factor) {
  Scaling scaling;
  PF_ASSIGN_OR_RETURN(scaling.weights, WeightsOf(convolution));
  PF_ASSIGN_OR_RETURN(scaling.channels, OutputChannels(convolution, scaling.weights.shape()));
  PF_ASSIGN_OR_RETURN(const ChannelDim channel_dim, ChannelDimOf(convolution));
  PF_ASSIGN_OR_RETURN(const Tensor values, ConstValue(*ConstantBehind(factor)));
  PF_ASSIGN_OR_RETURN(scaling.scale, PerChannel(values, channel_dim, scaling.channels.count));
  PF_RETURN_IF_ERROR(CheckFinite(scaling.scale));
  return scaling;
}

absl::StatusOr<int64_t> Fold(Graph* graph, const NoParams&, PassContext* context) {
  std::vector<Node*> pending;
  for (Node* node = graph->last(); node != nullptr; node = node->previous()) {
    if (node->op() == ops::kMul) pending.push_back(node);
  }
  int64_t rewrites = 0;
  NearMiss near_miss;
  while (!pending.empty()) {
    Node* mul = pending.back();
    pending.pop_back();
    if (mul->op() != ops::kMul) continue;  // Already folded.
    Match match;
    if (!Matches(ScaledConvolution(), *mul, &match, context->wants_misses ? &near_miss : nullptr)) {
      if (!near_miss.reason.empty()) context->Miss(*mul, near_miss);
      continue;
    }
    Node* convolution = match[kConvolution].node;
    Node* factor = match[kFactor].node;
    const absl::StatusOr<Scaling> scaling = ScalingOf(*convolution, match[kFactor]);
    if (absl::IsFailedPrecondition(scaling.status())) {
      context->Miss(*mul, scaling.status());
      continue;
    }
    PF_RETURN_IF_ERROR(scaling.status());
    const Node* weights_node = ConstantBehind(convolution->input(kWeightsInput));
    const RewriteScope rewrite(context, graph, {mul, convolution, factor, weights_node});
    if (!rewrite) continue;
    PF_ASSIGN_OR_RETURN(Tensor weights,
                        ScaleChannels(scaling->weights, scaling->channels, scaling->scale, context->num_threads));
    PF_RETURN_IF_ERROR(SetConstantInput(graph, convolution, kWeightsInput, std::move(weights)));
    PF_RETURN_IF_ERROR(TakeOver(graph, mul, convolution));
    RemoveUnusedConstant(graph, factor);
    ++rewrites;
    // A Mul after this one now directly follows a convolution.
    for (const Use& use : mul->uses()) {
      if (use.consumer->op() == ops::kMul) pending.push_back(use.consumer);
    }
  }
  if (rewrites > 0) DropDanglingColocations(graph);
  return rewrites;
}

}  // namespace

// Multiplies the weights instead of the result.
//
//   Mul m(Conv2D c(x, w), s)   =>   Conv2D m(x, w * s)
//
// Also applies to DepthwiseConv2dNative, Conv2DBackpropInput and MatMul, to a factor on either side, to both data
// formats, and to weights that are read through Identity nodes. The weights keep their name; the convolution takes the
// name of the Mul. Weights with other readers are left unchanged, and the convolution reads a copy.
//
// Leaves the Mul unchanged if the convolution has another reader or is an output, if the weights or the factor are not
// float constants, or if the factor is not one finite value per channel.
DEFINE_PASS(fold_batch_norms) {
  return Pass<NoParams>("Folds a constant per-channel Mul into the weights of the preceding convolution or MatMul.")
      .Why(
          "In a trained model, batch normalisation is a multiplication per channel, which has no run-time cost once it "
          "is part of the weights.")
      .Numerics(Within(1e-5))
      .Idempotent()
      .LooksFor({ops::kMul})
      .Run(Fold);
}

}  // namespace permafrost
