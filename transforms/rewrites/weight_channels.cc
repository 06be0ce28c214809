// Finds the channel dimension of a constant from the ops that read it.
#include "transforms/rewrites/weight_channels.h"

#include <vector>

namespace permafrost {
namespace {

// Maximum number of Identity nodes between a constant and its reader; freezing leaves one or two.
constexpr int kMaxIdentities = 8;
// Minimum size of a channel with its own range. In smaller channels the range costs about as much as the elements.
constexpr int64_t kMinElementsPerChannel = 8;

bool Flag(const Node& node, absl::string_view attr) {
  const absl::StatusOr<bool> value = BoolAttr(node, attr);
  return value.ok() && *value;
}

// Returns the dimension of the output channels in weights of `shape` at input `index` of `reader`; -1 if there is none.
int OutputDim(const Node& reader, uint32_t index, const Shape& shape) {
  const int rank = shape.rank();
  switch (reader.op().id()) {
    case ops::kConv2D:
    case ops::k_FusedConv2D:
      return index == 1 && rank == 4 ? 3 : -1;
    case ops::kConv3D:
      return index == 1 && rank == 5 ? 4 : -1;
    case ops::kConv2DBackpropInput:
      return index == 1 && rank == 4 ? 2 : -1;
    case ops::kDepthwiseConv2dNative:
    case ops::k_FusedDepthwiseConv2dNative:
      // [height, width, channels, multiplier].
      if (index != 1 || rank != 4) return -1;
      return shape.dim(2) == 1 ? 3 : 2;
    case ops::kMatMul:
    case ops::k_FusedMatMul:
      if (rank != 2 || index > 1) return -1;
      return index == 1 ? (Flag(reader, "transpose_b") ? 0 : 1) : (Flag(reader, "transpose_a") ? 1 : 0);
    case ops::kBatchMatMul:
    case ops::kBatchMatMulV2:
    case ops::kBatchMatMulV3:
      if (rank < 2 || index > 1) return -1;
      if (index == 1) return Flag(reader, "adj_y") ? rank - 2 : rank - 1;
      return Flag(reader, "adj_x") ? rank - 1 : rank - 2;
    default:
      return -1;
  }
}

bool IsTableOf(const Node& reader, uint32_t index) {
  return index == 0 && (reader.op() == ops::kGather || reader.op() == ops::kGatherV2);
}

}  // namespace

WeightChannels FindWeightChannels(const Node& constant, const Shape& shape) {
  const Node* linear = nullptr;
  int linear_dim = -1;
  bool is_table = false;
  std::vector<const Node*> level = {&constant};
  for (int depth = 0; depth <= kMaxIdentities && !level.empty(); ++depth) {
    std::vector<const Node*> next;
    for (const Node* node : level) {
      for (const Use& use : node->uses()) {
        if (use.consumer->input(use.index).is_control()) continue;
        if (use.consumer->op() == ops::kIdentity) next.push_back(use.consumer);
        is_table |= IsTableOf(*use.consumer, use.index);
        const int dim = OutputDim(*use.consumer, use.index, shape);
        if (dim < 0) continue;
        if (linear == nullptr || use.consumer->id() < linear->id() || (use.consumer == linear && dim < linear_dim)) {
          linear = use.consumer;
          linear_dim = dim;
        }
      }
    }
    level = std::move(next);
  }
  WeightChannels channels;
  channels.is_linear = linear != nullptr;
  channels.dim = linear != nullptr ? linear_dim : is_table ? 0 : shape.rank() - 1;
  if (channels.dim < 0 || shape.num_elements() < kMinElementsPerChannel * shape.dim(channels.dim)) channels.dim = -1;
  return channels;
}

}  // namespace permafrost
