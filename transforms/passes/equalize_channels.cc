// Scales the channels between convolutions, so that all of them use the codes of a quantised tensor well.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/absorption.h"
#include "transforms/rewrites/calibration_request.h"
#include "transforms/rewrites/channel_ranges.h"
#include "transforms/rewrites/channel_scaling.h"
#include "transforms/rewrites/colocation.h"
#include "transforms/rewrites/constant_values.h"

namespace permafrost {
namespace {

struct Params {
  std::string by = "weights";
  float strength = 0.5f;
  std::string relu6 = "keep";
  bool absorb_biases = false;
  std::string calibration;
};

// A factor of a channel lies between this and its inverse: codes cannot gain more, and weights must not overflow.
constexpr float kMostFactor = 256;
// Sweeps with by=weights: the factors of a layer depend on those of its neighbours. The paper repeats until nothing
// changes; later sweeps change factors by less than one per cent.
constexpr int kSweeps = 6;
constexpr float kSixOfRelu6 = 6;

bool IsOneOf(const Node& node, std::initializer_list<Op> ops) {
  return std::find(ops.begin(), ops.end(), node.op()) != ops.end();
}

bool IsFloat(const Node& node) { return TypeAttr(node, "T").value_or(DType::kInvalid) == DType::kFloat; }

bool IsNhwc(const Node& node) {
  const absl::StatusOr<std::string> format = StringAttr(node, "data_format");
  return !format.ok() || *format == "NHWC";
}

// A convolution or matrix product with constant weights, whose results have their channels last.
bool IsProduct(const Node& node) {
  return IsConvolution(node.op()) && IsFloat(node) && IsNhwc(node) && node.num_data_inputs() > DataInput(node.op()) &&
         WeightsOf(node).ok();
}

// Returns the input with the constant of a Mul by channel, or -1.
int FactorOfMul(const Node& node) {
  if (node.op() != ops::kMul || !IsFloat(node) || node.num_data_inputs() != 2) return -1;
  for (const int i : {0, 1}) {
    if (FloatConstant(node.input(i)).has_value() && ConstantBehind(node.input(1 - i)) == nullptr) return i;
  }
  return -1;
}

// Returns the constant summand of an addition by channel, or -1.
int SummandInput(const Node& node) {
  if (!IsOneOf(node, {ops::kBiasAdd, ops::kAdd, ops::kAddV2}) || !IsFloat(node) || node.num_data_inputs() != 2)
    return -1;
  for (const int i : {1, 0}) {
    if (FloatConstant(node.input(i)).has_value() && ConstantBehind(node.input(1 - i)) == nullptr) return i;
  }
  return -1;
}

// Returns whether the op computes each channel from the same channel of its first input and is homogeneous. Its other
// inputs are sizes and axes.
bool KeepsChannels(const Node& node, const ShapeMap& shapes) {
  if (!IsFloat(node) || !IsNhwc(node) || node.num_data_inputs() < 1) return false;
  if (IsOneOf(node, {ops::kIdentity, ops::kNeg, ops::kRelu, ops::kLeakyRelu, ops::kMaxPool, ops::kAvgPool, ops::kPad,
                     ops::kMirrorPad, ops::kResizeBilinear, ops::kResizeNearestNeighbor, ops::kSpaceToBatchND,
                     ops::kBatchToSpaceND, ops::kMean, ops::kSqueeze, ops::kReshape})) {
    const Shape from = shapes.Of(node.input(0)), to = shapes.Of({const_cast<Node*>(&node), 0});
    if (!from.has_rank() || !to.has_rank() || from.rank() < 1 || to.rank() < 1) return false;
    const int64_t channels = from.dim(from.rank() - 1);
    if (channels < 0 || to.dim(to.rank() - 1) != channels) return false;
    if (node.op() != ops::kMean) return true;
    // The last dimension must not be averaged: with one channel the sizes do not tell.
    const absl::StatusOr<bool> keeps = BoolAttr(node, "keep_dims");
    const auto axes = node.num_data_inputs() == 2 ? IntegerConstant(node.input(1)) : std::nullopt;
    if (!axes.has_value() || !keeps.ok()) return false;
    return std::none_of(axes->begin(), axes->end(),
                        [&](int64_t axis) { return axis == -1 || axis == from.rank() - 1; });
  }
  return false;
}

// Returns whether the op computes each channel from the same channel of two tensors and is homogeneous in both
// together.
bool JoinsChannels(const Node& node, const ShapeMap& shapes) {
  if (!IsOneOf(node, {ops::kAdd, ops::kAddV2, ops::kSub, ops::kMaximum, ops::kMinimum}) || !IsFloat(node) ||
      node.num_data_inputs() != 2) {
    return false;
  }
  const Shape to = shapes.Of({const_cast<Node*>(&node), 0});
  if (!to.has_rank() || to.rank() < 1 || to.dim(to.rank() - 1) < 1) return false;
  for (const int i : {0, 1}) {
    const Shape from = shapes.Of(node.input(i));
    if (ConstantBehind(node.input(i)) != nullptr || !from.has_rank() || from.rank() < 1 ||
        from.dim(from.rank() - 1) != to.dim(to.rank() - 1)) {
      return false;
    }
  }
  return true;
}

// Returns the vector as one number for each of `channels`; nothing if it has another size or a dimension before it.
std::optional<std::vector<float>> ByChannel(const Tensor& tensor, int64_t channels) {
  const Shape& shape = tensor.shape();
  if (tensor.num_elements() != 1 && tensor.num_elements() != channels) return std::nullopt;
  if (tensor.num_elements() > 1 && shape.dim(shape.rank() - 1) != channels) return std::nullopt;
  const UnalignedSpan<float> elements = tensor.elements<float>();
  std::vector<float> values(static_cast<size_t>(channels));
  for (size_t c = 0; c < values.size(); ++c) values[c] = elements[elements.size() == 1 ? 0 : c];
  return values;
}

// The largest magnitude in each channel.
absl::StatusOr<std::vector<float>> LargestOf(const Tensor& weights, const Channels& channels) {
  std::vector<float> largest(static_cast<size_t>(channels.count), 0);
  const UnalignedSpan<float> elements = weights.elements<float>();
  size_t i = 0;
  while (i < elements.size()) {
    for (float& most : largest) {
      for (int64_t inner = 0; inner < channels.inner; ++inner, ++i) {
        if (!std::isfinite(elements[i])) return absl::FailedPreconditionError("has weights that are not finite");
        most = std::max(most, std::fabs(elements[i]));
      }
    }
  }
  return largest;
}

// Tensors whose channels have the same factors. Producers divide their results by the factors, and readers multiply
// their data. A tensor that is added to one of them belongs to the region as well, so that a region holds the sums of
// all blocks of a residual network, or both parts of a PReLU.
class Region {
 public:
  // Why tensors, named by the nodes that compute them, can be in no region.
  using Obstacles = absl::flat_hash_map<const Node*, absl::Status>;

  Region(Graph* graph, const ShapeMap& shapes, const Params& params)
      : graph_(graph), shapes_(shapes), params_(params) {}

  // Finds the region of the results of `producer`. FailedPrecondition with the node that prevents it, which is then the
  // obstacle of all tensors that were found. So each is looked at once, however many producers a region has.
  absl::Status Grow(Node* producer, Obstacles* obstacles) {
    const absl::Status status = GrowAround(producer, *obstacles);
    if (absl::IsFailedPrecondition(status)) {
      for (const Node* node : included_) obstacles->emplace(node, status);
    }
    return status;
  }

  // Computes the factors. Nothing if all of them are 1.
  absl::StatusOr<std::vector<float>> Factors(const ChannelRanges& ranges) const {
    std::vector<float> readers(static_cast<size_t>(channels_), 0), before;
    for (const Node* reader : readers_) {
      if (!IsProduct(*reader)) continue;
      PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(*reader));
      PF_ASSIGN_OR_RETURN(const Channels channels, InputChannels(*reader, weights.shape()));
      if (channels.count != channels_) return Blocked(*reader, "reads other channels than are written");
      PF_ASSIGN_OR_RETURN(const std::vector<float> largest, LargestOf(weights, channels));
      for (size_t c = 0; c < readers.size(); ++c) readers[c] = std::max(readers[c], largest[c]);
    }
    double strength = 0.5;
    if (params_.by == "weights") {
      before.assign(static_cast<size_t>(channels_), 0);
      for (const Node* producer : producers_) {
        PF_ASSIGN_OR_RETURN(const std::vector<float> largest, LargestOfProducer(*producer));
        for (size_t c = 0; c < before.size(); ++c) before[c] = std::max(before[c], largest[c]);
      }
    } else {
      strength = params_.strength;
      before.assign(static_cast<size_t>(channels_), 0);
      for (const Node* reader : readers_) {
        if (!IsProduct(*reader)) continue;
        const auto found = ranges.find(reader->input(DataInput(reader->op())).ToString());
        if (found == ranges.end() || found->second.low.size() != before.size()) {
          return Blocked(*reader, "reads a tensor without ranges");
        }
        for (size_t c = 0; c < before.size(); ++c) {
          before[c] = std::max({before[c], -found->second.low[c], found->second.high[c]});
        }
      }
    }
    std::vector<float> factors(before.size(), 1);
    double logarithms = 0;
    int64_t count = 0;
    for (size_t c = 0; c < factors.size(); ++c) {
      if (!(before[c] > 0) || !(readers[c] > 0)) continue;
      const double factor = std::pow(before[c], strength) / std::pow(readers[c], 1 - strength);
      if (!std::isfinite(factor) || !(factor > 0)) continue;
      factors[c] = static_cast<float>(factor);
      logarithms += std::log(factor);
      ++count;
    }
    // The mean magnitude stays, so that only the differences between channels change.
    const double mean = count > 0 ? std::exp(logarithms / static_cast<double>(count)) : 1;
    for (size_t c = 0; c < factors.size(); ++c) {
      if (!(before[c] > 0) || !(readers[c] > 0)) {
        factors[c] = 1;
      } else {
        factors[c] = std::clamp(static_cast<float>(factors[c] / mean), 1 / kMostFactor, kMostFactor);
      }
    }
    return factors;
  }

  std::vector<const Node*> Matched() const {
    std::vector<const Node*> matched(producers_.begin(), producers_.end());
    matched.insert(matched.end(), inner_.begin(), inner_.end());
    for (const Node* reader : readers_) {
      if (!included_.contains(reader)) matched.push_back(reader);
    }
    return matched;
  }

  // Divides the results of the producers by the factors, and multiplies the weights of the readers.
  absl::Status Rewrite(const std::vector<float>& factors, int num_threads) {
    std::vector<float> inverse;
    for (const float factor : factors) inverse.push_back(1 / factor);
    for (Node* producer : producers_) {
      if (!IsProduct(*producer)) {
        // Between two tensors of the region a constant stays as it is.
        if (is_reader_.contains(producer)) continue;
        PF_RETURN_IF_ERROR(ScaleVector(producer, FactorOfMul(*producer), inverse));
        continue;
      }
      PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(*producer));
      PF_ASSIGN_OR_RETURN(const Channels channels, OutputChannels(*producer, weights.shape()));
      PF_ASSIGN_OR_RETURN(Tensor scaled, ScaleChannels(weights, channels, inverse, num_threads));
      PF_RETURN_IF_ERROR(SetConstantInput(graph_, producer, kWeightsInput, std::move(scaled)));
    }
    for (Node* node : inner_) {
      const int summand = SummandInput(*node);
      if (summand >= 0) PF_RETURN_IF_ERROR(ScaleVector(node, summand, inverse));
      if (node->op() == ops::kRelu6) PF_RETURN_IF_ERROR(ReplaceRelu6(node, inverse));
    }
    for (Node* reader : readers_) {
      if (!IsProduct(*reader)) {
        if (included_.contains(reader)) continue;
        PF_RETURN_IF_ERROR(ScaleVector(reader, FactorOfMul(*reader), factors));
        continue;
      }
      PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(*reader));
      PF_ASSIGN_OR_RETURN(const Channels channels, InputChannels(*reader, weights.shape()));
      PF_ASSIGN_OR_RETURN(Tensor scaled, ScaleChannels(weights, channels, factors, num_threads));
      PF_RETURN_IF_ERROR(SetConstantInput(graph_, reader, kWeightsInput, std::move(scaled)));
    }
    return absl::OkStatus();
  }

  int64_t channels() const { return channels_; }
  const std::vector<Node*>& producers() const { return producers_; }

 private:
  absl::Status GrowAround(Node* producer, const Obstacles& obstacles) {
    const Shape shape = shapes_.Of({producer, 0});
    if (!shape.has_rank() || shape.rank() < 1 || shape.dim(shape.rank() - 1) < 1) {
      return Blocked(*producer, "has a result of unknown channels");
    }
    channels_ = shape.dim(shape.rank() - 1);
    Include(producer);
    while (!waiting_.empty()) {
      Node* node = waiting_.back();
      waiting_.pop_back();
      if (const auto found = obstacles.find(node); found != obstacles.end()) return found->second;
      PF_RETURN_IF_ERROR(IncludeSources(node));
      PF_RETURN_IF_ERROR(IncludeReaders(node));
    }
    if (std::none_of(readers_.begin(), readers_.end(), [](const Node* reader) { return IsProduct(*reader); })) {
      return Blocked(*producer, "has no reader with weights that could take the factors");
    }
    return absl::OkStatus();
  }

  // Returns the largest weight of each channel of a producer.
  absl::StatusOr<std::vector<float>> LargestOfProducer(const Node& producer) const {
    const int factor = FactorOfMul(producer);
    if (factor >= 0) {
      std::vector<float> values = *ByChannel(*FloatConstant(producer.input(factor)), channels_);
      for (float& value : values) value = std::fabs(value);
      return values;
    }
    PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(producer));
    PF_ASSIGN_OR_RETURN(const Channels channels, OutputChannels(producer, weights.shape()));
    if (channels.count != channels_) return Blocked(producer, "has a result of other channels than its weights");
    return LargestOf(weights, channels);
  }

  // Adds the result of a node to the region.
  void Include(Node* node) {
    if (included_.insert(node).second) waiting_.push_back(node);
  }

  absl::Status RequireFactorByChannel(const Node& mul) const {
    if (ByChannel(*FloatConstant(mul.input(FactorOfMul(mul))), channels_).has_value()) return absl::OkStatus();
    return Blocked(mul, "multiplies with more than a number for each channel");
  }

  // Finds what the result of a node of the region comes from.
  absl::Status IncludeSources(Node* node) {
    if (graph_->IsEndpoint(node)) return BlockedByEndpoint(*node);
    PF_RETURN_IF_ERROR(RequireUnmarked(*node));
    if (IsProduct(*node) || FactorOfMul(*node) >= 0) {
      if (!IsProduct(*node)) PF_RETURN_IF_ERROR(RequireFactorByChannel(*node));
      producers_.push_back(node);
      return absl::OkStatus();
    }
    const int summand = SummandInput(*node);
    if (summand >= 0 && !ByChannel(*FloatConstant(node->input(summand)), channels_).has_value()) {
      return Blocked(*node, "adds more than a number for each channel");
    }
    if (node->op() == ops::kRelu6 && params_.relu6 == "keep") {
      return Blocked(*node, "is not homogeneous", WayOut{"relu6=relu or relu6=clip replaces it"});
    }
    std::vector<int> sources;
    if (summand >= 0) {
      sources = {1 - summand};
    } else if (JoinsChannels(*node, shapes_)) {
      sources = {0, 1};
    } else if (KeepsChannels(*node, shapes_) || (node->op() == ops::kRelu6 && IsFloat(*node))) {
      sources = {0};
    } else {
      return Blocked(*node, "cannot take factors of channels");
    }
    inner_.push_back(node);
    for (const int source : sources) {
      if (node->input(source).port != 0) return Blocked(*node->input(source).node, "has a second output that is read");
      Include(node->input(source).node);
    }
    return absl::OkStatus();
  }

  absl::Status IncludeReaders(Node* node) {
    for (const Use& use : node->uses()) {
      Node* reader = use.consumer;
      const int index = static_cast<int>(use.index);
      if (reader->input(index).is_control()) continue;
      if (reader->input(index).port != 0) return Blocked(*node, "has a second output that is read");
      const bool is_product = IsProduct(*reader) && index == DataInput(reader->op());
      const int factor = FactorOfMul(*reader), summand = SummandInput(*reader);
      if (is_product || (factor >= 0 && index == 1 - factor)) {
        if (!is_product) PF_RETURN_IF_ERROR(RequireFactorByChannel(*reader));
        if (is_reader_.insert(reader).second) readers_.push_back(reader);
        continue;
      }
      const bool passes =
          (summand >= 0 && index == 1 - summand) || JoinsChannels(*reader, shapes_) ||
          (index == 0 && (KeepsChannels(*reader, shapes_) || (reader->op() == ops::kRelu6 && IsFloat(*reader))));
      if (!passes) {
        return Blocked(*reader, absl::StrCat("reads ", node->Describe(), " and cannot take factors of channels"));
      }
      Include(reader);
    }
    return absl::OkStatus();
  }

  absl::Status ScaleVector(Node* node, int index, const std::vector<float>& factors) {
    const Tensor value = *FloatConstant(node->input(index));
    std::vector<float> values = *ByChannel(value, channels_);
    for (size_t c = 0; c < values.size(); ++c) values[c] *= factors[c];
    const Shape shape = value.num_elements() == channels_ ? value.shape() : Shape({channels_});
    return SetConstantInput(graph_, node, index, Tensor::FromVector(shape, std::move(values)));
  }

  // Relu6 => Relu, or Minimum of it and what 6 has become.
  absl::Status ReplaceRelu6(Node* node, const std::vector<float>& inverse) {
    if (params_.relu6 == "relu") {
      node->set_op(ops::kRelu);
      return absl::OkStatus();
    }
    std::vector<float> most;
    for (const float factor : inverse) most.push_back(kSixOfRelu6 * factor);
    PF_ASSIGN_OR_RETURN(Node * relu,
                        graph_->AddNode(graph_->UniqueName(absl::StrCat(node->name(), "/relu")), ops::kRelu, node));
    PF_ASSIGN_OR_RETURN(Node * limit, graph_->AddConst(graph_->UniqueName(absl::StrCat(node->name(), "/limit")),
                                                       Tensor::FromVector(Shape({channels_}), std::move(most)), node));
    for (Node* made : {relu, limit}) made->set_device(node->device());
    relu->SetAttr("T", AttrValue::Type(DType::kFloat));
    graph_->AddInput(relu, node->input(0));
    graph_->SetInput(node, 0, {relu, 0});
    // Control inputs come last.
    std::vector<Node*> controls;
    for (int i = node->num_inputs() - 1; i >= node->num_data_inputs(); --i) {
      controls.push_back(node->input(i).node);
      graph_->RemoveInput(node, i);
    }
    graph_->AddInput(node, {limit, 0});
    for (Node* control : controls) graph_->AddControlInput(node, control);
    node->set_op(ops::kMinimum);
    node->ClearAttrs();
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    return absl::OkStatus();
  }

  Graph* graph_;
  const ShapeMap& shapes_;
  const Params& params_;
  int64_t channels_ = 0;
  absl::flat_hash_set<const Node*> included_, is_reader_;
  std::vector<Node*> producers_, inner_, waiting_, readers_;
};

// Returns the convolution or matrix product that adds up everything that it reads in one place: padding would add
// zeros, which take no part of a bias.
bool HasNoPadding(const Node& product, const Tensor& weights) {
  if (product.op() == ops::kMatMul) return true;
  if (product.op() == ops::kConv2DBackpropInput) return false;
  return StringAttr(product, "padding").value_or("") == "VALID" ||
         (weights.shape().dim(0) == 1 && weights.shape().dim(1) == 1);
}

// Moves the part of biases that a Relu always lets pass into the biases behind it.
class BiasAbsorber {
 public:
  BiasAbsorber(Graph* graph, const ChannelRanges& ranges, PassContext* context)
      : graph_(graph), ranges_(ranges), context_(context) {}

  absl::StatusOr<int64_t> Run(const std::vector<Node*>& order) {
    int64_t rewrites = 0;
    for (Node* relu : order) {
      if (relu->op() != ops::kRelu || relu->num_data_inputs() != 1) continue;
      PF_ASSIGN_OR_RETURN(const bool is_rewritten, IsRewritten(Try(relu), *relu, context_));
      rewrites += is_rewritten ? 1 : 0;
    }
    return rewrites;
  }

 private:
  absl::Status Try(Node* relu) {
    Node* add = relu->input(0).node;
    const int summand = SummandInput(*add);
    if (summand < 0 || relu->input(0).port != 0) return Blocked(*relu, "does not read a biased result");
    for (const Node* node : {add, relu}) {
      if (graph_->IsEndpoint(node)) return BlockedByEndpoint(*node);
      PF_RETURN_IF_ERROR(RequireUnmarked(*node));
    }
    PF_RETURN_IF_ERROR(RequireUsedOnce(*add));
    const auto range = ranges_.find(relu->input(0).ToString());
    if (range == ranges_.end()) return Blocked(*relu, "reads a tensor without ranges");
    const auto channels = static_cast<int64_t>(range->second.low.size());
    std::vector<float> surplus(range->second.low.size());
    for (size_t c = 0; c < surplus.size(); ++c) surplus[c] = std::max(0.f, range->second.low[c]);
    if (std::all_of(surplus.begin(), surplus.end(), [](float value) { return value == 0; })) {
      return Blocked(*relu, "has no channel that is always positive");
    }
    std::optional<std::vector<float>> bias = ByChannel(*FloatConstant(add->input(summand)), channels);
    if (!bias.has_value()) return Blocked(*add, "adds more than a number for each channel");
    struct Change {
      Node* add;
      int index;
      std::vector<float> bias;
    };
    std::vector<Change> changes;
    for (size_t c = 0; c < surplus.size(); ++c) (*bias)[c] -= surplus[c];
    changes.push_back({add, summand, *std::move(bias)});
    for (const Use& use : relu->uses()) {
      Node* product = use.consumer;
      const int index = static_cast<int>(use.index);
      if (product->input(index).is_control()) continue;
      if (!IsProduct(*product) || index != DataInput(product->op()) || product->op() == ops::kDepthwiseConv2dNative) {
        return Blocked(*product, "cannot take a bias");
      }
      PF_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(*product));
      if (!HasNoPadding(*product, weights)) return Blocked(*product, "pads its input");
      PF_RETURN_IF_ERROR(RequireUsedOnce(*product));
      Node* next = product->uses()[0].consumer;
      const int next_summand = SummandInput(*next);
      if (next_summand < 0) return Blocked(*product, "has no bias");
      PF_ASSIGN_OR_RETURN(const Channels in, InputChannels(*product, weights.shape()));
      PF_ASSIGN_OR_RETURN(const Channels out, OutputChannels(*product, weights.shape()));
      if (in.count != channels) return Blocked(*product, "reads other channels than are written");
      std::optional<std::vector<float>> next_bias = ByChannel(*FloatConstant(next->input(next_summand)), out.count);
      if (!next_bias.has_value()) return Blocked(*next, "adds more than a number for each channel");
      std::vector<double> sums(static_cast<size_t>(out.count), 0);
      const UnalignedSpan<float> elements = weights.elements<float>();
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto from = static_cast<size_t>(static_cast<int64_t>(i) / in.inner % in.count);
        const auto to = static_cast<size_t>(static_cast<int64_t>(i) / out.inner % out.count);
        sums[to] += static_cast<double>(elements[i]) * surplus[from];
      }
      for (size_t c = 0; c < sums.size(); ++c) (*next_bias)[c] += static_cast<float>(sums[c]);
      changes.push_back({next, next_summand, *std::move(next_bias)});
    }
    if (changes.size() < 2) return Blocked(*relu, "has no reader with weights");
    const RewriteScope rewrite(context_, graph_, {relu, add, changes[1].add});
    if (!rewrite) return LimitReached();
    for (Change& change : changes) {
      const Tensor old = *FloatConstant(change.add->input(change.index));
      const auto size = static_cast<int64_t>(change.bias.size());
      const Shape shape = old.num_elements() == size ? old.shape() : Shape({size});
      PF_RETURN_IF_ERROR(
          SetConstantInput(graph_, change.add, change.index, Tensor::FromVector(shape, std::move(change.bias))));
    }
    return absl::OkStatus();
  }

  Graph* graph_;
  const ChannelRanges& ranges_;
  PassContext* context_;
};

absl::StatusOr<ChannelRanges> RangesFor(const Params& params, PassContext* context) {
  if (params.by == "weights" && !params.absorb_biases) return ChannelRanges();
  CalibrationRequest request;
  request.kind = CalibrationRequest::Kind::kChannelRanges;
  PF_ASSIGN_OR_RETURN(const std::string text,
                      ReadCalibration(params.calibration, request, "the ranges of channels are unknown", context));
  if (text.empty() && params.calibration.empty()) return ChannelRanges();
  absl::StatusOr<ChannelRanges> parsed = ParseChannelRanges(text);
  if (!params.calibration.empty()) PF_RETURN_IF_ERROR(Annotate(parsed.status(), params.calibration));
  return parsed;
}

absl::StatusOr<int64_t> Equalize(Graph* graph, const Params& params, PassContext* context) {
  if (params.by != "weights" && params.by != "activations") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'by' is '", params.by, "', expected weights or activations"));
  }
  if (params.relu6 != "keep" && params.relu6 != "clip" && params.relu6 != "relu") {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'relu6' is '", params.relu6, "', expected keep, clip or relu"));
  }
  PF_ASSIGN_OR_RETURN(const ChannelRanges ranges, RangesFor(params, context));
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph);
  const absl::StatusOr<std::vector<Node*>> order = StableTopologicalOrder(*graph);
  if (!shapes.ok() || !order.ok()) {
    context->Note(
        absl::StrCat("the graph is left as it is: ", (shapes.ok() ? order.status() : shapes.status()).message()));
    return 0;
  }
  int64_t rewrites = 0;
  if (params.absorb_biases) {
    PF_ASSIGN_OR_RETURN(rewrites, BiasAbsorber(graph, ranges, context).Run(*order));
  }
  size_t num_producers = 0;
  Region::Obstacles obstacles;
  const int sweeps = params.by == "weights" ? kSweeps : 1;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    absl::flat_hash_set<const Node*> done;  // Producers of regions of this sweep.
    for (Node* node : *order) {
      if (graph->IsInput(node) || (!IsProduct(*node) && FactorOfMul(*node) < 0)) continue;
      if (done.contains(node)) continue;
      Region region(graph, *shapes, params);
      std::vector<float> factors;
      const auto attempt = [&]() -> absl::Status {
        PF_RETURN_IF_ERROR(region.Grow(node, &obstacles));
        done.insert(region.producers().begin(), region.producers().end());
        PF_ASSIGN_OR_RETURN(factors, region.Factors(ranges));
        // Below this, the gain is less than the rounding of a code.
        constexpr float kLeastChange = 0.01f;
        if (std::all_of(factors.begin(), factors.end(),
                        [](float each) { return std::fabs(each - 1) < kLeastChange; })) {
          return Blocked(*node, "has channels of equal ranges");
        }
        const RewriteScope rewrite(context, graph, region.Matched());
        if (!rewrite) return LimitReached();
        return region.Rewrite(factors, context->num_threads);
      };
      PF_ASSIGN_OR_RETURN(const bool is_rewritten, IsRewritten(attempt(), *node, context));
      if (!is_rewritten) continue;
      ++rewrites;
      num_producers += sweep == 0 ? region.producers().size() : 0;
    }
  }
  if (num_producers > 0) context->Note(absl::StrCat("equalised the channels behind ", num_producers, " nodes"));
  if (rewrites > 0) DropDanglingColocations(graph);
  return rewrites;
}

}  // namespace

// Scales channels between convolutions and matrix products, so that a range for a tensor fits all of its channels.
//
//   Conv2D(Relu(BiasAdd(Conv2D(x, w), b)), v)   =>   Conv2D(Relu(BiasAdd(Conv2D(x, w / s), b / s)), v * s)
//
// s has one factor for each channel. by=weights takes those for which the largest weights of both sides are equal
// (cross-layer equalisation, Nagel et al. 2019, arXiv:1906.04721): for weights with one range for the whole tensor.
// by=activations takes s = a^strength / v^(1 - strength), where a is the largest activation and v the largest weight of
// a channel (Xiao et al. 2022, arXiv:2211.10438): for activations with one range. Activations are those of
// --verify_inputs, or of calibration.
//
// A Mul by a constant, such as the last of a normalisation, is divided as a convolution is. The factors pass additions
// of constants, Relu, LeakyRelu, poolings, paddings, resizing and reshaping that keeps the channels; depthwise
// convolutions take them on both sides. Tensors that are added to each other have the same factors, so that the sums of
// all blocks of a residual network are scaled together. Relu6 is not homogeneous: relu6=clip replaces it by Relu and
// Minimum with one limit for each channel, relu6=relu by Relu alone, which changes the outputs where 6 is exceeded.
//
// absorb_biases moves the least value of a channel, if it is positive for all inputs, from before a Relu into the bias
// behind it, which narrows the range (Nagel et al. 2019). It holds for the inputs that were seen, and for products
// without padding.
//
// Leaves channels unchanged that reach an output or any other op, in NCHW, or whose weights are shared or not constant.
DEFINE_PASS(equalize_channels) {
  return Pass<Params>("Scales channels between layers so that quantised tensors represent all of them well.")
      .Why("With one range for a tensor, channels with small values would have few codes and large errors.")
      .Param("by", &Params::by, "weights or activations: what is equal for all channels afterwards.")
      .Param("strength", &Params::strength,
             "With by=activations, how far activations become equal; the rest is for weights.", Between(0, 1))
      .Param("relu6", &Params::relu6, "keep: no factors pass Relu6; clip or relu: what replaces it.")
      .Param("absorb_biases", &Params::absorb_biases,
             "Move what is positive for all inputs from before a Relu into the next bias.")
      .Param("calibration", &Params::calibration,
             "Path of a calibration file with ranges, which transform_graph --write_calibration writes. Default: runs "
             "on inputs.")
      .Numerics(Changes("channels are scaled, which rounds; relu6=relu and absorb_biases change more"))
      .Run(Equalize);
}

}  // namespace permafrost
