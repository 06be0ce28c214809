// Fuses a convolution or MatMul with the following bias and activation.
#include <string>
#include <utility>
#include <vector>

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
  bool depthwise = false;
};

// An op that can be fused with bias and activation, and the resulting op.
struct Fusable {
  Op op, fused;
  const char* attrs[7];  // Attributes that both ops have, terminated by null.
};
constexpr Fusable kFusables[] = {
    {ops::kConv2D,
     ops::k_FusedConv2D,
     {"T", "strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu"}},
    {ops::kDepthwiseConv2dNative,
     ops::k_FusedDepthwiseConv2dNative,
     {"T", "strides", "padding", "data_format", "dilations"}},
    {ops::kMatMul, ops::k_FusedMatMul, {"T", "transpose_a", "transpose_b"}},
};

const Fusable* FusableOf(Op op) {
  for (const Fusable& fusable : kFusables) {
    if (fusable.op == op) return &fusable;
  }
  return nullptr;
}

// Returns true if TensorFlow's CPU kernel of `fused` supports the activation.
bool IsActivationFor(Op fused, Op op) {
  if (op == ops::kRelu || op == ops::kRelu6 || op == ops::kElu) return true;
  if (op == ops::kLeakyRelu) return fused != ops::k_FusedDepthwiseConv2dNative;
  return (op == ops::kTanh || op == ops::kSigmoid) && fused == ops::k_FusedMatMul;
}

bool IsAddition(Op op) { return op == ops::kBiasAdd || op == ops::kAdd || op == ops::kAddV2; }

// Checks that `op` can be fused at all: float, NHWC, no groups.
absl::Status RequireFusable(const Node& node, const Params& params, const ShapeMap* shapes) {
  PF_ASSIGN_OR_RETURN(const DType type, TypeAttr(node, "T"));
  if (type != DType::kFloat) return Blocked(node, absl::StrCat("has the type ", DTypeName(type), ", expected float"));
  if (node.op() == ops::kMatMul) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const WindowForms forms, WindowFormsOf(node, 1, 1));
  if (forms.is_nchw()) return Blocked(node, "has the data_format NCHW, which TensorFlow's fused CPU kernels lack");
  if (node.op() == ops::kDepthwiseConv2dNative) {
    if (!params.depthwise) {
      return Blocked(node, "is depthwise, which TensorFlow fuses only with its oneDNN kernels",
                     WayOut{"use depthwise=true"});
    }
    if (forms.padding == "EXPLICIT") return Blocked(node, "has explicit paddings, which the fused op lacks");
    return absl::OkStatus();
  }
  const Shape image = KnownShape(node.input(0), shapes), filter = KnownShape(node.input(1), shapes);
  const int64_t channels = image.has_rank() && image.rank() == 4 ? image.dim(3) : kUnknownDim;
  const int64_t expected = filter.has_rank() && filter.rank() == 4 ? filter.dim(2) : kUnknownDim;
  if (channels == kUnknownDim || expected == kUnknownDim) {
    return Blocked(node, "may have groups, since the channels of its input or filter are not known",
                   WayOut{"give the input a fixed number of channels"});
  }
  if (channels == expected) return absl::OkStatus();
  return Blocked(node, "has groups, which TensorFlow's fused CPU kernels lack");
}

// Returns the number of channels of the result, or kUnknownDim.
int64_t ChannelsOf(const Node& node, const ShapeMap* shapes) {
  const Shape weights = KnownShape(node.input(kWeightsInput), shapes);
  const absl::StatusOr<Channels> channels =
      weights.has_rank() ? OutputChannels(node, weights) : absl::StatusOr<Channels>(Channels{kUnknownDim, 1});
  return channels.ok() && channels->count >= 0 ? channels->count : kUnknownDim;
}

// The values added to each channel: the tensor itself if it is a vector, else values for a new constant.
struct Bias {
  TensorRef vector;           // No node if `values` is used.
  std::vector<float> values;  // One for each channel.
};

absl::StatusOr<Bias> BiasOf(const Node& addition, const Node& source, const ShapeMap* shapes) {
  const int own = addition.input(0).node == &source ? 0 : 1;
  if (addition.num_data_inputs() != 2) return Blocked(addition, "has not two inputs");
  Bias bias;
  bias.vector = addition.input(1 - own);
  if (addition.op() == ops::kBiasAdd) {
    if (own != 0) return Blocked(addition, "has the convolution as its bias");
    PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(addition, "data_format"));
    if (format != "NHWC") {
      return Blocked(addition, absl::StrCat("has the data_format ", format, ", not that of the convolution"));
    }
    return bias;
  }
  const Node* constant = ConstantBehind(bias.vector);
  if (constant == nullptr) return BlockedByVariable(addition, 1 - own, "adds a value that is not constant");
  const int64_t channels = ChannelsOf(source, shapes);
  if (channels == kUnknownDim) return Blocked(source, "has weights of unknown shape");
  PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*constant));
  if (value.dtype() == DType::kFloat && value.shape() == Shape({channels})) return bias;
  PF_ASSIGN_OR_RETURN(const ChannelDim channel_dim, ChannelDimOf(source));
  absl::StatusOr<std::vector<float>> values = PerChannel(value, channel_dim, channels);
  if (!values.ok())
    return Blocked(addition, absl::StrCat("adds a constant that is not a bias: ", values.status().message()));
  bias.vector = TensorRef();
  bias.values = *std::move(values);
  return bias;
}

// Records a miss for an activation that is not fused with the bias, since the sum has other readers.
void TellActivationThatStays(const Node& addition, Op fused, const absl::Status& why, PassContext* context) {
  for (const Use& use : addition.uses()) {
    if (!IsActivationFor(fused, use.consumer->op())) continue;
    context->Miss(*use.consumer, Annotate(why, "is not fused with the bias"));
    return;
  }
}

absl::Status FuseOne(Graph* graph, Node* node, const Params& params, const ShapeMap* shapes, PassContext* context) {
  const Fusable& fusable = *FusableOf(node->op());
  Node* addition = node->uses()[0].consumer;
  PF_RETURN_IF_ERROR(RequireFusable(*node, params, shapes));
  if (graph->IsInput(addition)) return BlockedByEndpoint(*addition);
  PF_ASSIGN_OR_RETURN(Bias bias, BiasOf(*addition, *node, shapes));

  // There may be no activation.
  Node* head = addition;
  std::vector<std::string> fused_ops = {"BiasAdd"};
  float alpha = 0;
  if (const absl::Status used_once = RequireUsedOnce(*addition); !used_once.ok()) {
    TellActivationThatStays(*addition, fusable.fused, used_once, context);
  } else {
    Node* consumer = addition->uses()[0].consumer;
    const bool fits = IsActivationFor(fusable.fused, consumer->op()) && consumer->num_data_inputs() == 1 &&
                      consumer->input(0) == TensorRef{addition, 0} && !graph->IsInput(consumer);
    if (fits) {
      head = consumer;
      fused_ops.emplace_back(head->op().name());
      if (head->op() == ops::kLeakyRelu) {
        PF_ASSIGN_OR_RETURN(alpha, FloatAttr(*head, "alpha"));
      }
    }
  }

  const RewriteScope rewrite(context, graph, {head, node, addition});
  if (!rewrite) return LimitReached();
  if (bias.vector.node == nullptr) {
    const int64_t channels = static_cast<int64_t>(bias.values.size());
    PF_ASSIGN_OR_RETURN(Node * made,
                        graph->AddConst(graph->UniqueName(absl::StrCat(addition->name(), "_bias")),
                                        Tensor::FromVector(Shape({channels}), std::move(bias.values)), head));
    made->set_device(node->device());
    bias.vector = {made, 0};
  }
  const bool has_activation = head != addition;
  const bool is_leaky = head->op() == ops::kLeakyRelu;
  head->set_op(fusable.fused);
  head->set_device(node->device());
  head->ClearAttrs();
  for (const char* key : fusable.attrs) {
    const AttrValue* value = key == nullptr ? nullptr : node->FindAttr(key);
    if (value != nullptr) head->SetAttr(key, *value);
  }
  head->SetAttr("num_args", AttrValue::Int(1));
  if (fusable.fused == ops::k_FusedConv2D) {
    head->SetAttr("num_host_args", AttrValue::Int(0));
    head->SetAttr("TArgs", AttrValue::TypeList({DType::kFloat}));
  }
  head->SetAttr("fused_ops", AttrValue::StringList(fused_ops));
  if (is_leaky) head->SetAttr("leakyrelu_alpha", AttrValue::Float(alpha));
  const TensorRef inputs[] = {node->input(0), node->input(1), bias.vector};
  if (has_activation) return Absorb(graph, head, inputs, {addition, node});
  return Absorb(graph, head, inputs, {node});
}

// Records a miss if bias and activation exist, but behind nodes that other passes remove.
void TellWhatIsBehind(const Node& node, PassContext* context) {
  if (node.uses().size() != 1) return;
  const Node& behind = *node.uses()[0].consumer;
  const Op op = behind.op();
  if (op == ops::kIdentity && behind.uses().size() == 1 && IsAddition(behind.uses()[0].consumer->op())) {
    context->Miss(node, NotMatched(NearMiss::Kind::kOtherOp, {const_cast<Node*>(&behind), 0},
                                   absl::StrCat("its bias follows ", behind.Describe())));
  } else if (op == ops::kFusedBatchNorm || op == ops::kFusedBatchNormV3 ||
             op == ops::kBatchNormWithGlobalNormalization) {
    context->MissIfWanted(node, WayOut{"run fold_old_batch_norms first, which makes a bias of it"}, "is read by ",
                          behind.Describe(), ", expected a bias");
  } else if (op == ops::kMul) {
    context->MissIfWanted(node, WayOut{"run fold_batch_norms and simplify_arithmetic first"}, "is read by ",
                          behind.Describe(), ", expected a bias");
  }
}

absl::StatusOr<int64_t> Fuse(Graph* graph, const Params& params, PassContext* context) {
  // Only those whose result is read by a bias alone; others are not near misses.
  std::vector<Node*> heads;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (FusableOf(node->op()) == nullptr || node->num_data_inputs() != 2) continue;
    bool has_addition = false;
    for (const Use& use : node->uses()) {
      has_addition |= IsAddition(use.consumer->op()) && !use.consumer->input(use.index).is_control();
      if (has_addition) break;
    }
    if (!has_addition) {
      TellWhatIsBehind(*node, context);
      continue;
    }
    if (const absl::Status status = RequireUsedOnce(*node); !status.ok()) {
      context->Miss(*node, status);
      continue;
    }
    heads.push_back(node);
  }
  PF_ASSIGN_OR_RETURN(const int64_t rewrites,
                      RewriteEach(graph, heads, context, [&](Node* head, const ShapeMap* shapes) {
                        return FuseOne(graph, head, params, shapes, context);
                      }));
  if (rewrites > 0) context->Note(absl::StrCat("fused ", rewrites, " biases"));
  return rewrites;
}

}  // namespace

// Fuses a bias, and an activation that follows it, into the preceding Conv2D or MatMul.
//
//   Relu y(BiasAdd(Conv2D(x, w), b))   =>   _FusedConv2D y(x, w, b) with fused_ops BiasAdd, Relu
//   Add y(MatMul(x, w), Const b)       =>   _FusedMatMul y(x, w, b) with fused_ops BiasAdd
//
// The bias is a BiasAdd, or an Add or AddV2 with one constant value per channel on either side. The activation is
// absent or one of Relu, Relu6, Elu and LeakyRelu, or after a MatMul also Tanh or Sigmoid. These are the forms that
// TensorFlow's CPU kernels support. The fused ops are internal to TensorFlow: versions that have the attribute TArgs,
// such as 2.21, load and run them, but no Python function creates them. Run this pass last, because other passes do not
// match the fused ops.
//
// With depthwise=true, the pass also fuses DepthwiseConv2dNative, with Relu, Relu6 or Elu. TensorFlow runs that op only
// with its oneDNN kernels enabled, which is the default on x86; the runtime of this project always supports it.
//
// Leaves a convolution or MatMul unchanged if it has another reader or is an output, is not float, is NCHW, or has or
// may have groups (the number of input channels is unknown). An activation is not fused if the sum has another reader
// or is an output.
DEFINE_PASS(fuse_activations) {
  return Pass<Params>("Fuses bias and activation into the preceding convolution or MatMul.")
      .Why(
          "Bias and activation are then applied while the result is in the cache, instead of in two more passes over "
          "memory.")
      .Param("depthwise", &Params::depthwise,
             "Also fuse depthwise convolutions, which TensorFlow runs only with its oneDNN kernels enabled.")
      .LooksFor({ops::kConv2D, ops::kMatMul})
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Fuse);
}

}  // namespace permafrost
