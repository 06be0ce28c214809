// Scales convolutions and matrix products per channel.
#include "transforms/rewrites/channel_scaling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/matching/near_miss.h"
#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

absl::Status Unsuitable(const Node& node, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(node.Describe(), " ", what));
}

absl::Status RequireRank(const Node& convolution, const Shape& weights) {
  const int rank = convolution.op() == ops::kMatMul ? 2 : 4;
  if (weights.has_rank() && weights.rank() == rank) return absl::OkStatus();
  return Unsuitable(convolution, absl::StrCat("has weights of shape ", weights.ToString(), ", expected rank ", rank));
}

// Scales one value of each channel. The constant trip count lets the compiler vectorise.
void ScaleRow(UnalignedSpan<float> values, const float* __restrict scale, float* __restrict out) {
  constexpr size_t kLanes = 16;
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) out[i + lane] = values[i + lane] * scale[i + lane];
  }
  for (; i < values.size(); ++i) out[i] = values[i] * scale[i];
}

// Returns the number of data uses of `node`, up to 2; control edges do not count.
int CountReads(const Node& node) {
  int count = 0;
  for (const Use& use : node.uses()) {
    if (!use.consumer->input(use.index).is_control() && ++count == 2) break;
  }
  return count;
}

// Returns true for a Const, or an Identity of one, without control inputs.
bool IsDoneAtOnce(Node* node) {
  const Node* constant = ConstantBehind({node, 0});
  if (constant == nullptr) return false;
  for (const Node* at = node; at != constant; at = at->input(0).node) {
    if (at->num_inputs() != 1) return false;
  }
  return constant->num_inputs() == 0;
}

}  // namespace

Channels ChannelsAlong(const Shape& shape, int dim) {
  Channels channels = {shape.dim(dim), 1};
  for (int i = dim + 1; i < shape.rank(); ++i) channels.inner *= shape.dim(i);
  return channels;
}

bool IsConvolution(Op op) {
  return op == ops::kConv2D || op == ops::kDepthwiseConv2dNative || op == ops::kConv2DBackpropInput ||
         op == ops::kMatMul;
}

int DataInput(Op op) { return op == ops::kConv2DBackpropInput ? 2 : 0; }

absl::StatusOr<Channels> OutputChannels(const Node& convolution, const Shape& weights) {
  PF_RETURN_IF_ERROR(RequireRank(convolution, weights));
  if (convolution.op() == ops::kMatMul) {
    PF_ASSIGN_OR_RETURN(const bool is_transposed, BoolAttr(convolution, "transpose_b"));
    return ChannelsAlong(weights, is_transposed ? 0 : 1);
  }
  if (convolution.op() == ops::kConv2DBackpropInput) return ChannelsAlong(weights, 2);
  // [height, width, channels, multiplier]: the results of one input channel are contiguous.
  if (convolution.op() == ops::kDepthwiseConv2dNative) return Channels{weights.dim(2) * weights.dim(3), 1};
  return ChannelsAlong(weights, 3);
}

absl::StatusOr<Channels> InputChannels(const Node& convolution, const Shape& weights) {
  PF_RETURN_IF_ERROR(RequireRank(convolution, weights));
  if (convolution.op() == ops::kMatMul) {
    PF_ASSIGN_OR_RETURN(const bool data_is_transposed, BoolAttr(convolution, "transpose_a"));
    if (data_is_transposed) return Unsuitable(convolution, "transposes its data");
    PF_ASSIGN_OR_RETURN(const bool is_transposed, BoolAttr(convolution, "transpose_b"));
    return ChannelsAlong(weights, is_transposed ? 1 : 0);
  }
  return ChannelsAlong(weights, convolution.op() == ops::kConv2DBackpropInput ? 3 : 2);
}

absl::StatusOr<ChannelDim> ChannelDimOf(const Node& convolution) {
  if (convolution.op() == ops::kMatMul) return ChannelDim{1, 2};
  PF_ASSIGN_OR_RETURN(const std::string format, StringAttr(convolution, "data_format"));
  if (format == "NHWC") return ChannelDim{3, 4};
  if (format == "NCHW") return ChannelDim{1, 4};
  return Unsuitable(convolution, absl::StrCat("has the data_format '", format, "', expected NHWC or NCHW"));
}

absl::StatusOr<Tensor> WeightsOf(const Node& convolution) {
  const Node* constant =
      kWeightsInput < convolution.num_data_inputs() ? ConstantBehind(convolution.input(kWeightsInput)) : nullptr;
  if (constant == nullptr) {
    const bool has_weights = kWeightsInput < convolution.num_data_inputs();
    return NotMatched(NearMiss::Kind::kNotConstant, has_weights ? convolution.input(kWeightsInput) : TensorRef(),
                      absl::StrCat(convolution.Describe(), " has weights that are not constant"));
  }
  PF_ASSIGN_OR_RETURN(Tensor weights, ConstValue(*constant));
  if (weights.dtype() == DType::kFloat) return weights;
  return Unsuitable(convolution, absl::StrCat("has weights of type ", DTypeName(weights.dtype()), ", expected float"));
}

absl::StatusOr<std::vector<float>> PerChannel(const Tensor& factor, ChannelDim channel_dim, int64_t channels) {
  if (factor.dtype() != DType::kFloat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the factor has the type ", DTypeName(factor.dtype()), ", expected float"));
  }
  const Shape& shape = factor.shape();
  bool fits = shape.rank() <= channel_dim.rank;
  for (int i = 0; fits && i < shape.rank(); ++i) {
    const bool is_channels = channel_dim.rank - shape.rank() + i == channel_dim.dim;
    fits = shape.dim(i) == 1 || (is_channels && shape.dim(i) == channels);
  }
  if (!fits) {
    return absl::FailedPreconditionError(absl::StrCat("the factor has the shape ", shape.ToString(),
                                                      ", expected one value for each of ", channels, " channels"));
  }
  const UnalignedSpan<float> values = factor.elements<float>();
  std::vector<float> result(channels);
  for (int64_t i = 0; i < channels; ++i) result[i] = values[values.size() == 1 ? 0 : i];
  return result;
}

absl::Status CheckFinite(absl::Span<const float> scale) {
  const auto bad = std::find_if(scale.begin(), scale.end(), [](float value) { return !std::isfinite(value); });
  if (bad == scale.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the factor of channel ", bad - scale.begin(), " is ", *bad, ", expected a finite one"));
}

absl::StatusOr<Tensor> ScaleChannels(const Tensor& weights, Channels channels, absl::Span<const float> scale,
                                     int num_threads) {
  float* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor scaled, Tensor::Allocate(weights.shape(), &out));
  const UnalignedSpan<float> values = weights.elements<float>();
  if (channels.inner == 1) {
    const size_t count = static_cast<size_t>(channels.count);
    // A piece may begin and end within a row.
    ForPieces(values.size(), num_threads, [&](size_t start, size_t end) {
      for (size_t i = start; i < end;) {
        const size_t channel = i % count;
        const size_t length = std::min(count - channel, end - i);
        ScaleRow(UnalignedSpan<float>(values.bytes() + i * sizeof(float), length), scale.data() + channel, out + i);
        i += length;
      }
    });
    return scaled;
  }
  size_t i = 0;
  while (i < values.size()) {
    for (int64_t channel = 0; channel < channels.count; ++channel) {
      const float factor = scale[channel];
      for (int64_t inner = 0; inner < channels.inner; ++inner, ++i) out[i] = values[i] * factor;
    }
  }
  return scaled;
}

absl::Status SetConstantInput(Graph* graph, Node* node, int index, Tensor value) {
  Node* constant = ConstantBehind(node->input(index));
  bool is_shared = constant == nullptr;
  for (Node* at = node->input(index).node; !is_shared; at = at->input(0).node) {
    is_shared = CountReads(*at) != 1 || graph->IsEndpoint(at);
    if (at == constant) break;
  }
  if (!is_shared) {
    constant->SetAttr("value", AttrValue::OfTensor(std::move(value)));
    return absl::OkStatus();
  }
  Node* old = node->input(index).node;
  const absl::string_view base = constant == nullptr ? node->name() : constant->name();
  PF_ASSIGN_OR_RETURN(Node * made,
                      graph->AddConst(graph->UniqueName(absl::StrCat(base, "_folded")), std::move(value), node));
  made->set_device(node->device());
  if (constant != nullptr) {
    for (int i = 0; i < constant->num_inputs(); ++i) graph->AddControlInput(made, constant->input(i).node);
  }
  graph->SetInput(node, index, {made, 0});
  RemoveUnusedConstant(graph, old);
  return absl::OkStatus();
}

absl::Status TakeOver(Graph* graph, Node* node, Node* source) {
  std::vector<TensorRef> inputs, controls;
  for (const Node* from : {static_cast<const Node*>(source), static_cast<const Node*>(node)}) {
    for (int i = 0; i < from->num_inputs(); ++i) {
      const TensorRef input = from->input(i);
      if (input.is_control()) {
        controls.push_back(input);
      } else if (from == source) {
        inputs.push_back(input);
      }
    }
  }
  graph->ClearInputs(node);
  for (const TensorRef& input : inputs) graph->AddInput(node, input);
  for (const TensorRef& control : controls) {
    if (control.node != source) graph->AddControlInput(node, control.node);
  }
  node->set_op(source->op());
  node->CopyAttrs(*source);
  node->set_device(source->device());
  return graph->RemoveNode(source);
}

void RemoveUnusedConstant(Graph* graph, Node* node) {
  while (node != nullptr && CountReads(*node) == 0 && !graph->IsEndpoint(node) &&
         (node->op() == ops::kConst || node->op() == ops::kIdentity)) {
    if (IsDoneAtOnce(node)) {
      while (!node->uses().empty()) graph->RemoveInput(node->uses()[0].consumer, node->uses()[0].index);
    }
    Node* producer = node->op() == ops::kIdentity && node->num_data_inputs() == 1 ? node->input(0).node : nullptr;
    if (!graph->RemoveNode(node).ok()) return;
    node = producer;
  }
}

}  // namespace permafrost
