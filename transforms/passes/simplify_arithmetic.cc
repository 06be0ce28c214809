// Merges arithmetic nodes by combining their constants.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/constant_arithmetic.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

bool IsAddition(Op op) { return op == ops::kAdd || op == ops::kAddV2; }
bool IsFloat(const Node& node) { return TypeAttr(node, "T").value_or(DType::kInvalid) == DType::kFloat; }

// A node that adds a constant to its other input or multiplies that input by a constant.
struct WithConstant {
  int constant_input = -1;
  Tensor constant;

  explicit operator bool() const { return constant_input >= 0; }
  int other_input() const { return 1 - constant_input; }
};
WithConstant FindConstant(const Node& node) {
  WithConstant found;
  if (node.num_data_inputs() != 2 || !IsFloat(node)) return found;
  for (const int i : {1, 0}) {
    std::optional<Tensor> constant = FloatConstant(node.input(i));
    if (!constant.has_value() || ConstantBehind(node.input(1 - i)) != nullptr) continue;
    found.constant_input = i;
    found.constant = *std::move(constant);
    break;
  }
  return found;
}

// Result of a rule for a node.
enum class Outcome { kNone, kRewritten };
constexpr Outcome kNone = Outcome::kNone;
constexpr Outcome kRewritten = Outcome::kRewritten;

class Simplification {
 public:
  Simplification(Graph* graph, PassContext* context) : graph_(graph), context_(context) {}

  // Visits producers before consumers, so that each rule sees the rewritten inputs of its node.
  absl::StatusOr<int64_t> Run() {
    PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StableTopologicalOrder(*graph_));
    using Rule = absl::StatusOr<Outcome> (Simplification::*)(Node*);
    constexpr Rule kRules[] = {
        &Simplification::MakeAdditionOrProduct, &Simplification::JoinConstants,   &Simplification::JoinBiases,
        &Simplification::DistributeProduct,     &Simplification::ScaleDataInput,  &Simplification::JoinCasts,
        &Simplification::NameThePower,          &Simplification::SquareOfProduct, &Simplification::AbsorbNegation,
    };
    int64_t rewrites = 0;
    for (Node* node : order) {
      for (const Rule rule : kRules) {
        PF_ASSIGN_OR_RETURN(const Outcome outcome, (this->*rule)(node));
        if (outcome == kRewritten) ++rewrites;
      }
    }
    PF_RETURN_IF_ERROR(RemoveUnread(graph_, std::move(maybe_unread_)).status());
    return rewrites;
  }

 private:
  // Rewrites x - c to x + -c, and x / c to x * (1 / c).
  absl::StatusOr<Outcome> MakeAdditionOrProduct(Node* node) {
    const bool is_difference = node->op() == ops::kSub;
    if (!is_difference && node->op() != ops::kRealDiv) return kNone;
    const WithConstant found = FindConstant(*node);
    if (!found || found.constant_input != 1) return kNone;
    absl::StatusOr<Tensor> changed = is_difference ? Mapped(found.constant, [](float c) { return -c; })
                                                   : Mapped(found.constant, [](float c) { return 1 / c; });
    if (!changed.ok()) return Decline(*node, changed.status());
    const RewriteScope rewrite(context_, graph_, {node});
    if (!rewrite) return kNone;
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, node, 1, *std::move(changed)));
    node->set_op(is_difference ? ops::kAddV2 : ops::kMul);
    return kRewritten;
  }

  // Rewrites (x + a) + b to x + (a + b), and likewise for products.
  absl::StatusOr<Outcome> JoinConstants(Node* node) {
    const bool is_product = node->op() == ops::kMul;
    if (!is_product && !IsAddition(node->op())) return kNone;
    const WithConstant outer = FindConstant(*node);
    if (!outer) return kNone;
    Node* inside = node->input(outer.other_input()).node;
    if (is_product ? inside->op() != ops::kMul : !IsAddition(inside->op())) return kNone;
    const WithConstant inner = FindConstant(*inside);
    if (!inner) return kNone;
    if (const absl::Status once = RequireUsedOnce(*inside); !once.ok()) return Decline(*node, once);
    absl::StatusOr<Tensor> joined =
        Combined(inner.constant, is_product ? Operation::kProduct : Operation::kSum, outer.constant);
    if (!joined.ok()) return Decline(*node, joined.status());
    const RewriteScope rewrite(context_, graph_, {node, inside});
    if (!rewrite) return kNone;
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, node, outer.constant_input, *std::move(joined)));
    Skip(node, outer.other_input(), inner.other_input());
    return kRewritten;
  }

  // Rewrites BiasAdd(BiasAdd(x, a), b) to BiasAdd(x, a + b), also if the second is an addition of one value per
  // channel.
  absl::StatusOr<Outcome> JoinBiases(Node* node) {
    if (node->op() != ops::kBiasAdd && !IsAddition(node->op())) return kNone;
    const WithConstant outer = FindConstant(*node);
    if (!outer) return kNone;
    Node* inside = node->input(outer.other_input()).node;
    if (inside->op() != ops::kBiasAdd) return kNone;
    const WithConstant inner = FindConstant(*inside);
    if (!inner || inner.constant_input != 1 || inner.constant.shape().rank() != 1) return kNone;
    if (const absl::Status once = RequireUsedOnce(*inside); !once.ok()) return Decline(*node, once);
    PF_ASSIGN_OR_RETURN(const std::string inner_format, StringAttr(*inside, "data_format"));
    if (node->op() == ops::kBiasAdd) {
      PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(*node, "data_format"));
      if (format != inner_format) {
        context_->MissIfWanted(*node, "has the data_format ", format, ", and ", inside->Describe(), " before it ",
                               inner_format);
        return kNone;
      }
    } else if (inner_format != "NHWC" || outer.constant.shape().rank() > 1) {
      context_->MissIfWanted(*node, "adds float", outer.constant.shape().ToString(), " to ", inside->Describe(),
                             " of data_format ", inner_format, ", expected one value per channel and NHWC");
      return kNone;
    }
    absl::StatusOr<Tensor> joined = Combined(inner.constant, Operation::kSum, outer.constant);
    if (!joined.ok()) return Decline(*node, joined.status());
    if (joined->shape() != inner.constant.shape()) {
      context_->MissIfWanted(*node, "would widen the bias of ", inside->Describe(), " from ",
                             inner.constant.shape().ToString(), " to ", joined->shape().ToString());
      return kNone;
    }
    const RewriteScope rewrite(context_, graph_, {node, inside});
    if (!rewrite) return kNone;
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, inside, 1, *std::move(joined)));
    Node* constant = node->input(outer.constant_input).node;
    PF_RETURN_IF_ERROR(TakeOver(graph_, node, inside));
    RemoveUnusedConstant(graph_, constant);
    return kRewritten;
  }

  // Rewrites (conv(x, w) + b) * s to conv(x, w * s) + b * s for one s per channel.
  absl::StatusOr<Outcome> DistributeProduct(Node* node) {
    if (node->op() != ops::kMul) return kNone;
    const WithConstant factor = FindConstant(*node);
    if (!factor) return kNone;
    Node* sum = node->input(factor.other_input()).node;
    if (!IsAddition(sum->op()) && sum->op() != ops::kBiasAdd) return kNone;
    const WithConstant bias = FindConstant(*sum);
    if (!bias) return kNone;
    Node* convolution = sum->input(bias.other_input()).node;
    if (!IsConvolution(convolution->op())) return kNone;
    if (const absl::Status once = RequireUsedOnce(*sum); !once.ok()) return Decline(*node, once);
    if (const absl::Status once = RequireUsedOnce(*convolution); !once.ok()) return Decline(*node, once);
    absl::StatusOr<ScaledWeights> scaled = ScaleOutput(*convolution, factor.constant);
    if (!scaled.ok()) return Decline(*node, scaled.status());
    // A bias must stay a vector; the constant of an addition may have any shape.
    const Tensor per_channel = Tensor::FromVector(Shape({static_cast<int64_t>(scaled->scale.size())}), scaled->scale);
    absl::StatusOr<Tensor> scaled_bias =
        Combined(bias.constant, Operation::kProduct, sum->op() == ops::kBiasAdd ? per_channel : factor.constant);
    if (!scaled_bias.ok()) return Decline(*node, scaled_bias.status());
    const RewriteScope rewrite(context_, graph_, {node, sum, convolution});
    if (!rewrite) return kNone;
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, convolution, kWeightsInput, std::move(scaled->weights)));
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, sum, bias.constant_input, *std::move(scaled_bias)));
    Node* constant = node->input(factor.constant_input).node;
    PF_RETURN_IF_ERROR(TakeOver(graph_, node, sum));
    RemoveUnusedConstant(graph_, constant);
    return kRewritten;
  }

  // Rewrites conv(x * s, w) to conv(x, s * w) for one s per channel of the input.
  absl::StatusOr<Outcome> ScaleDataInput(Node* node) {
    if (!IsConvolution(node->op()) || DataInput(node->op()) >= node->num_data_inputs()) return kNone;
    const int data = DataInput(node->op());
    Node* product = node->input(data).node;
    if (product->op() != ops::kMul) return kNone;
    const WithConstant factor = FindConstant(*product);
    if (!factor) return kNone;
    if (const absl::Status once = RequireUsedOnce(*product); !once.ok()) return Decline(*node, once);
    absl::StatusOr<ScaledWeights> scaled = ScaleInput(*node, factor.constant);
    if (!scaled.ok()) return Decline(*node, scaled.status());
    const RewriteScope rewrite(context_, graph_, {node, product});
    if (!rewrite) return kNone;
    PF_RETURN_IF_ERROR(SetConstantInput(graph_, node, kWeightsInput, std::move(scaled->weights)));
    Skip(node, data, factor.other_input());
    return kRewritten;
  }

  // Removes a lossless cast before another cast.
  absl::StatusOr<Outcome> JoinCasts(Node* node) {
    if (node->op() != ops::kCast || node->num_data_inputs() != 1) return kNone;
    Node* inside = node->input(0).node;
    if (inside->op() != ops::kCast || inside->num_data_inputs() != 1) return kNone;
    if (graph_->IsInput(inside)) return Decline(*node, BlockedByEndpoint(*inside));
    PF_ASSIGN_OR_RETURN(const DType from, TypeAttr(*inside, "SrcT"));
    PF_ASSIGN_OR_RETURN(const DType through, TypeAttr(*inside, "DstT"));
    if (!Contains(through, from)) {
      context_->MissIfWanted(*node, "follows a cast from ", DTypeName(from), " to ", DTypeName(through),
                             ", which may change values");
      return kNone;
    }
    const RewriteScope rewrite(context_, graph_, {node, inside});
    if (!rewrite) return kNone;
    node->SetAttr("SrcT", AttrValue::Type(from));
    Skip(node, 0, 0);
    return kRewritten;
  }

  // Replaces Pow with a constant exponent by a dedicated op.
  absl::StatusOr<Outcome> NameThePower(Node* node) {
    if (node->op() != ops::kPow || node->num_data_inputs() != 2) return kNone;
    if (!IsFloat(*node)) {
      context_->MissIfWanted(*node, "is not float");
      return kNone;
    }
    const std::optional<Tensor> exponent = FloatConstant(node->input(1));
    if (!exponent.has_value())
      return Decline(*node, BlockedByVariable(*node, 1, "has an exponent that is not constant"));
    if (exponent->shape().rank() != 0) {
      context_->MissIfWanted(*node, "has an exponent of shape ", exponent->shape().ToString(), ", expected a scalar");
      return kNone;
    }
    Op op;
    const float value = exponent->elements<float>()[0];
    if (value == 2.0f) op = ops::kSquare;
    if (value == 0.5f) op = ops::kSqrt;
    if (value == -0.5f) op = ops::kRsqrt;
    if (value == -1.0f) op = ops::kReciprocal;
    if (!op.is_known()) {
      context_->MissIfWanted(*node, "has the exponent ", value, ", expected 2, 0.5, -0.5 or -1");
      return kNone;
    }
    const RewriteScope rewrite(context_, graph_, {node});
    if (!rewrite) return kNone;
    Node* constant = node->input(1).node;
    graph_->RemoveInput(node, 1);
    node->set_op(op);
    RemoveUnusedConstant(graph_, constant);
    return kRewritten;
  }

  // Rewrites x * x to Square(x).
  absl::StatusOr<Outcome> SquareOfProduct(Node* node) {
    if (node->op() != ops::kMul || node->num_data_inputs() != 2 || node->input(0) != node->input(1)) return kNone;
    if (!IsFloat(*node)) return kNone;
    const RewriteScope rewrite(context_, graph_, {node});
    if (!rewrite) return kNone;
    graph_->RemoveInput(node, 1);
    node->set_op(ops::kSquare);
    return kRewritten;
  }

  // Rewrites a + -b to a - b, a - -b to a + b, and -(-a) to a, which other passes remove.
  absl::StatusOr<Outcome> AbsorbNegation(Node* node) {
    const bool is_difference = node->op() == ops::kSub;
    if ((!is_difference && !IsAddition(node->op())) || node->num_data_inputs() != 2 || !IsFloat(*node)) return kNone;
    for (const int i : {1, 0}) {
      if (is_difference && i == 0) continue;  // -a - b has no shorter form.
      Node* negation = node->input(i).node;
      if (negation->op() != ops::kNeg || negation->num_data_inputs() != 1) continue;
      if (graph_->IsInput(negation)) return Decline(*node, BlockedByEndpoint(*negation));
      const RewriteScope rewrite(context_, graph_, {node, negation});
      if (!rewrite) return kNone;
      const TensorRef other = node->input(1 - i);
      Skip(node, i, 0);
      if (i == 0) {
        const TensorRef negated = node->input(0);
        graph_->SetInput(node, 0, other);
        graph_->SetInput(node, 1, negated);
      }
      node->set_op(is_difference ? ops::kAddV2 : ops::kSub);
      return kRewritten;
    }
    return kNone;
  }

  struct ScaledWeights {
    Tensor weights;
    std::vector<float> scale;
  };
  absl::StatusOr<ScaledWeights> ScaleOutput(const Node& convolution, const Tensor& factor) {
    PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(convolution));
    PF_ASSIGN_OR_RETURN(const Channels channels, OutputChannels(convolution, weights.shape()));
    return Scale(convolution, weights, channels, factor);
  }
  absl::StatusOr<ScaledWeights> ScaleInput(const Node& convolution, const Tensor& factor) {
    PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(convolution));
    PF_ASSIGN_OR_RETURN(const Channels channels, InputChannels(convolution, weights.shape()));
    return Scale(convolution, weights, channels, factor);
  }
  absl::StatusOr<ScaledWeights> Scale(const Node& convolution, const Tensor& weights, Channels channels,
                                      const Tensor& factor) {
    PF_ASSIGN_OR_RETURN(const ChannelDim channel_dim, ChannelDimOf(convolution));
    ScaledWeights scaled;
    PF_ASSIGN_OR_RETURN(scaled.scale, PerChannel(factor, channel_dim, channels.count));
    PF_RETURN_IF_ERROR(CheckFinite(scaled.scale));
    PF_ASSIGN_OR_RETURN(scaled.weights, ScaleChannels(weights, channels, scaled.scale, context_->num_threads));
    return scaled;
  }

  // Returns true if every value of `inner` is a value of `outer`.
  static bool Contains(DType outer, DType inner) {
    const auto bits = [](DType type) {  // Width of the integers that the type holds exactly, without sign; 0 otherwise.
      switch (type) {
        case DType::kBool:
          return 1;
        case DType::kUint8:
        case DType::kInt8:
          return type == DType::kInt8 ? 7 : 8;
        case DType::kInt16:
        case DType::kUint16:
          return type == DType::kInt16 ? 15 : 16;
        case DType::kInt32:
        case DType::kUint32:
          return type == DType::kInt32 ? 31 : 32;
        case DType::kHalf:
          return 11;
        case DType::kBFloat16:
          return 8;
        case DType::kFloat:
          return 24;
        case DType::kDouble:
          return 53;
        default:
          return 0;
      }
    };
    const auto is_unsigned = [](DType type) {
      return type == DType::kUint8 || type == DType::kUint16 || type == DType::kUint32;
    };
    if (bits(outer) == 0 || bits(inner) == 0 || outer == DType::kBool) return false;
    if (IsFloating(inner)) return outer == DType::kDouble || (outer == DType::kFloat && inner != DType::kDouble);
    if (inner != DType::kBool && is_unsigned(outer) && !is_unsigned(inner)) return false;
    return bits(outer) >= bits(inner);
  }

  // Redirects input `i` of `node` to input `of_inside` of its producer, and adds the producer's control inputs.
  void Skip(Node* node, int i, int of_inside) {
    Node* inside = node->input(i).node;
    graph_->SetInput(node, i, inside->input(of_inside));
    for (int c = inside->num_data_inputs(); c < inside->num_inputs(); ++c) {
      if (inside->input(c).node != node) graph_->AddControlInput(node, inside->input(c).node);
    }
    maybe_unread_.push_back(inside);
  }

  absl::StatusOr<Outcome> Decline(const Node& node, const absl::Status& why) {
    if (!absl::IsFailedPrecondition(why)) return why;
    context_->Miss(node, why);
    return kNone;
  }

  Graph* graph_;
  PassContext* context_;
  std::vector<Node*> maybe_unread_;
};

absl::StatusOr<int64_t> Simplify(Graph* graph, const NoParams&, PassContext* context) {
  int64_t rewrites = 0, in_round = 0;
  do {
    context->misses.clear();  // Only the misses of the last round count.
    PF_ASSIGN_OR_RETURN(in_round, Simplification(graph, context).Run());
    rewrites += in_round;
  } while (in_round > 0);
  return rewrites;
}

}  // namespace

// Combines several ops with constants into one.
//
//   Mul(Mul(x, a), b)                   =>   Mul(x, a * b), and likewise for additions and biases
//   Sub(x, a), RealDiv(x, a)            =>   AddV2(x, -a), Mul(x, 1 / a)
//   Mul(BiasAdd(Conv2D(x, w), b), s)    =>   BiasAdd(Conv2D(x, w * s), b * s)
//   Conv2D(Mul(x, s), w)                =>   Conv2D(x, s * w)
//   Cast(Cast(x, int8 to float), half)  =>   Cast(x, int8 to half)
//   Pow(x, 2), Mul(x, x)                =>   Square(x); also Sqrt, Rsqrt and Reciprocal
//   AddV2(a, Neg(b)), Sub(a, Neg(b))    =>   Sub(a, b), AddV2(a, b)
//
// Leaves unchanged types other than float, except in casts; values with other readers; factors that are not one value
// per channel; and constants whose combination overflows, underflows, or is larger than both. Weights with other
// readers are left unchanged, and the convolution reads a copy.
DEFINE_PASS(simplify_arithmetic) {
  return Pass<NoParams>("Combines chains of arithmetic with constants into fewer nodes.")
      .Why("Other passes leave chains of scales and shifts, whose constants can be combined.")
      .Numerics(Within(1e-5))
      .Idempotent()
      .Run(Simplify);
}

}  // namespace permafrost
