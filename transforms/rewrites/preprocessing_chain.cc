// Follows an input through nodes that map channels.
#include "transforms/rewrites/preprocessing_chain.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "transforms/rewrites/channel_scaling.h"

namespace permafrost {
namespace {

bool IsPixelType(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kUint8 || dtype == DType::kInt8 || dtype == DType::kInt32;
}

// Returns one value per channel, or one for all channels, of a constant operand of an image.
std::optional<std::vector<double>> OperandOf(const Node& node, int index, int channel_dim) {
  const Node* constant = ConstantBehind(node.input(index));
  if (constant == nullptr) return std::nullopt;
  const absl::StatusOr<Tensor> value = ConstValue(*constant);
  if (!value.ok() || value->dtype() != DType::kFloat || value->num_elements() == 0) return std::nullopt;
  const int64_t channels = value->num_elements();
  const absl::StatusOr<std::vector<float>> values = PerChannel(*value, {channel_dim, 4}, channels);
  if (!values.ok()) return std::nullopt;
  return std::vector<double>(values->begin(), values->end());
}

// Returns whether a StridedSlice reverses the last dimension of an image and nothing else, as x[..., ::-1] does.
bool ReversesByStride(const Node& node) {
  std::vector<int64_t> strides;
  for (int i = 1; i < 4; ++i) {
    const Node* constant = ConstantBehind(node.input(i));
    const absl::StatusOr<Tensor> value = constant == nullptr ? absl::NotFoundError("") : ConstValue(*constant);
    const absl::StatusOr<std::vector<int64_t>> values = value.ok() ? IntegerValues(*value) : value.status();
    if (!values.ok()) return false;
    if (i == 3) strides = *values;
  }
  const auto mask = [&](const char* key) { return IntAttr(node, key).value_or(0); };
  if (strides.empty() || strides.size() > 4 || mask("new_axis_mask") != 0 || mask("shrink_axis_mask") != 0)
    return false;
  const int64_t ellipsis = mask("ellipsis_mask"), last = static_cast<int64_t>(strides.size()) - 1;
  if (ellipsis == 0 && strides.size() != 4) return false;
  if (ellipsis == int64_t{1} << last) return false;
  for (int64_t i = 0; i <= last; ++i) {
    const int64_t bit = int64_t{1} << i;
    if ((ellipsis & bit) != 0) continue;
    const bool is_whole = (mask("begin_mask") & bit) != 0 && (mask("end_mask") & bit) != 0;
    if (!is_whole || strides[static_cast<size_t>(i)] != (i == last ? -1 : 1)) return false;
  }
  return true;
}

bool ReversesChannels(const Node& node, int channel_dim) {
  if (node.op() == ops::kStridedSlice && node.num_data_inputs() == 4) return channel_dim == 3 && ReversesByStride(node);
  if (node.op() != ops::kReverseV2 || node.num_data_inputs() != 2) return false;
  const Node* constant = ConstantBehind(node.input(1));
  const absl::StatusOr<Tensor> value = constant == nullptr ? absl::NotFoundError("") : ConstValue(*constant);
  const absl::StatusOr<std::vector<int64_t>> axes = value.ok() ? IntegerValues(*value) : value.status();
  return axes.ok() && axes->size() == 1 && ((*axes)[0] == channel_dim || (*axes)[0] == channel_dim - 4);
}

// Returns the map of one node, which reads the image at input `index`, or nothing.
std::optional<ChannelMap> MapOf(const Node& node, int index, int channel_dim) {
  ChannelMap map;
  map.channel_dim = channel_dim;
  const Op op = node.op();
  if (op == ops::kIdentity) return map;
  if (index == 0 && ReversesChannels(node, channel_dim)) {
    map.is_reversed = true;
    return map;
  }
  if (op == ops::kCast) {
    const DType from = TypeAttr(node, "SrcT").value_or(DType::kInvalid);
    const DType to = TypeAttr(node, "DstT").value_or(DType::kInvalid);
    return IsPixelType(from) && to == DType::kFloat ? std::optional<ChannelMap>(map) : std::nullopt;
  }
  const bool is_float = TypeAttr(node, "T").value_or(DType::kInvalid) == DType::kFloat;
  if (!is_float || node.num_data_inputs() != 2 || op == ops::kReverseV2) return std::nullopt;
  const std::optional<std::vector<double>> operand = OperandOf(node, 1 - index, channel_dim);
  if (!operand.has_value()) return std::nullopt;
  if (op == ops::kMul) {
    map.scale = *operand;
  } else if (op == ops::kAdd || op == ops::kAddV2 || (op == ops::kBiasAdd && index == 0 && channel_dim == 3)) {
    map.offset = *operand;
  } else if (op == ops::kSub) {
    map.offset = *operand;
    if (index == 0) std::transform(operand->begin(), operand->end(), map.offset.begin(), [](double v) { return -v; });
    if (index == 1) map.scale = {-1};
  } else if ((op == ops::kRealDiv || op == ops::kDiv) && index == 0) {
    map.scale.clear();
    for (const double value : *operand) map.scale.push_back(1 / value);
  } else {
    return std::nullopt;
  }
  return map.IsInvertible() ? std::optional<ChannelMap>(map) : std::nullopt;
}

// Extends the chain as far as its nodes map channels of this dimension.
void Follow(const Graph& graph, const Shape& shape, int channel_dim, PreprocessingChain* chain) {
  chain->map.channel_dim = channel_dim;
  for (;;) {
    const Node* at = chain->end().node;
    if (at->uses().size() != 1 || (!chain->nodes.empty() && graph.IsEndpoint(at)) || graph.IsOutput(at)) break;
    const Use use = at->uses()[0];
    Node* next = use.consumer;
    if (next->num_inputs() != next->num_data_inputs() || graph.IsEndpoint(next)) break;
    const std::optional<ChannelMap> map = MapOf(*next, static_cast<int>(use.index), channel_dim);
    if (!map.has_value()) break;
    // An operand of several channels would make several of one.
    if (map->num_channels() > 1 && static_cast<int64_t>(map->num_channels()) != shape.dim(channel_dim)) break;
    chain->map = Compose(chain->map, *map);
    chain->nodes.push_back(next);
  }
}

}  // namespace

std::vector<PreprocessingChain> FindPreprocessing(const Graph& graph) {
  std::vector<PreprocessingChain> chains;
  for (const Endpoint& input : graph.inputs()) {
    if (input.node == nullptr || input.node->op() != ops::kPlaceholder || graph.IsOutput(input.node)) continue;
    PreprocessingChain chain;
    chain.placeholder = input.node;
    chain.dtype = TypeAttr(*input.node, "dtype").value_or(DType::kInvalid);
    const Shape shape = ShapeAttr(*input.node, "shape").value_or(Shape::UnknownRank());
    if (!IsPixelType(chain.dtype) || !shape.has_rank() || shape.rank() != 4) continue;
    PreprocessingChain last = chain, first = chain;
    Follow(graph, shape, 3, &last);
    Follow(graph, shape, 1, &first);
    chains.push_back(first.nodes.size() > last.nodes.size() ? std::move(first) : std::move(last));
  }
  return chains;
}

absl::Status RemoveChain(Graph* graph, const PreprocessingChain& chain, TensorRef to) {
  graph->ReplaceUses(chain.end(), to);
  graph->ReplaceControlUses(chain.end().node, to.node);
  for (auto node = chain.nodes.rbegin(); node != chain.nodes.rend(); ++node) {
    std::vector<Node*> operands;
    for (int i = 0; i < (*node)->num_data_inputs(); ++i) operands.push_back((*node)->input(i).node);
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    PF_RETURN_IF_ERROR(graph->RemoveNode(*node));
    for (Node* operand : operands) {
      const bool is_of_chain = operand == chain.placeholder ||
                               std::find(chain.nodes.begin(), chain.nodes.end(), operand) != chain.nodes.end();
      if (!is_of_chain) RemoveUnusedConstant(graph, operand);
    }
  }
  return absl::OkStatus();
}

}  // namespace permafrost
