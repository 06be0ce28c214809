// Follows each image of rank 4 in both layouts: as the graph has it, and with the channels last. A layout is computed
// from the other one where a node first needs it.
#include "runtime_check/delegates/onednn/layout_assignment.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/ops/op.h"

namespace permafrost {
namespace onednn {
namespace {

constexpr int kRank = 4;
constexpr int kNone = -1;
// Position in [N, H, W, C] of each dimension of [N, C, H, W], and the reverse.
constexpr std::array<int, kRank> kToLast = {0, 3, 1, 2};
constexpr std::array<int, kRank> kFromLast = {0, 2, 3, 1};

Shape LastShape(const Shape& first) { return {first.dim(0), first.dim(2), first.dim(3), first.dim(1)}; }

// Returns the shape with leading dimensions of 1.
Shape OfRank4(const Shape& shape) {
  Shape result;
  for (int i = shape.rank(); i < kRank; ++i) result.AddDim(1);
  for (const int64_t dim : shape.dims()) result.AddDim(dim);
  return result;
}

// Returns a constant [N, C, H, W] of any type as [N, H, W, C].
std::optional<Tensor> TransposedConstant(const Tensor& tensor) {
  const Shape shape = OfRank4(tensor.shape()), last = LastShape(shape);
  const auto size = static_cast<size_t>(SizeOf(tensor.dtype()));
  char* data = nullptr;
  absl::StatusOr<Tensor> result = Tensor::Allocate(tensor.dtype(), last, &data);
  if (!result.ok() || size == 0) return std::nullopt;
  const char* from = tensor.bytes().data();
  for (int64_t n = 0; n < shape.dim(0); ++n) {
    for (int64_t y = 0; y < shape.dim(2); ++y) {
      for (int64_t x = 0; x < shape.dim(3); ++x) {
        for (int64_t c = 0; c < shape.dim(1); ++c, data += size) {
          const int64_t at = ((n * shape.dim(1) + c) * shape.dim(2) + y) * shape.dim(3) + x;
          std::memcpy(data, from + static_cast<size_t>(at) * size, size);
        }
      }
    }
  }
  return *std::move(result);
}

class LayoutAssigner {
 public:
  LayoutAssigner(Partition* partition, std::vector<ParsedNode>* nodes)
      : partition_(*partition), nodes_(*nodes), images_(partition->tensors.size()) {}

  void Run() {
    std::vector<DelegateNode> given;
    std::vector<ParsedNode> parsed;
    given.swap(partition_.nodes);
    parsed.swap(nodes_);
    for (size_t i = 0; i < given.size(); ++i) {
      reader_ = given[i].node;
      Assign(given[i], std::move(parsed[i]));
    }
    for (const int output : partition_.outputs) NeedGiven(output);
  }

 private:
  // A tensor in both layouts. Only float tensors of rank 4 have a second one.
  struct Image {
    bool is_given_made = true;  // False if the tensor itself is computed only on demand, from `last`.
    int last = kNone;           // The tensor with the channels last.
  };

  const DelegateTensor& TensorAt(int tensor) const { return partition_.tensors[tensor]; }
  bool IsConstant(int tensor) const { return TensorAt(tensor).constant.has_value(); }
  bool IsImage(int tensor) const {
    return TensorAt(tensor).dtype == DType::kFloat && TensorAt(tensor).shape.rank() == kRank;
  }
  // Returns true if the layout with channels last is the one that is computed first.
  bool IsLast(int tensor) const { return !images_[tensor].is_given_made; }
  // Returns true if both layouts have the same order in memory.
  static bool IsSameOrder(const Shape& first) { return first.dim(1) == 1 || (first.dim(2) == 1 && first.dim(3) == 1); }

  int AddTensor(DelegateTensor tensor) {
    partition_.tensors.push_back(std::move(tensor));
    images_.emplace_back();
    return static_cast<int>(partition_.tensors.size()) - 1;
  }
  int AddConstant(Tensor value) {
    DelegateTensor tensor;
    tensor.dtype = value.dtype();
    tensor.shape = value.shape();
    tensor.constant = std::move(value);
    return AddTensor(std::move(tensor));
  }
  int AddLast(int given) {
    DelegateTensor tensor;
    tensor.dtype = DType::kFloat;
    tensor.shape = LastShape(TensorAt(given).shape);
    return AddTensor(std::move(tensor));
  }
  // Makes the output of a node one whose channels are last.
  int NewLast(int given) {
    const int last = AddLast(given);
    images_[given] = {false, last};
    return last;
  }

  void Emit(DelegateNode node, ParsedNode parsed) {
    partition_.nodes.push_back(std::move(node));
    nodes_.push_back(std::move(parsed));
  }
  void EmitAlias(int from, int to) {
    ParsedNode parsed;
    parsed.kind = NodeKind::kAlias;
    Emit({reader_, {from}, {to}}, std::move(parsed));
  }
  void EmitTranspose(int from, int to, const Shape& first, std::vector<int64_t> strides) {
    if (IsSameOrder(first)) return EmitAlias(from, to);
    ParsedNode parsed;
    parsed.kind = NodeKind::kView;
    parsed.views.push_back({0, std::move(strides)});
    Emit({reader_, {from}, {to}}, std::move(parsed));
  }

  // Returns the tensor with the channels last, which is computed if it does not exist. REQUIRES: IsImage.
  int NeedLast(int tensor) {
    if (images_[tensor].last != kNone) return images_[tensor].last;
    const int last = AddLast(tensor);
    images_[tensor].last = last;
    const Shape first = TensorAt(tensor).shape;
    const int64_t area = first.dim(2) * first.dim(3);
    EmitTranspose(tensor, last, first, {first.dim(1) * area, first.dim(3), 1, area});
    return last;
  }
  // Computes the tensor itself if it was not.
  void NeedGiven(int tensor) {
    if (images_[tensor].is_given_made) return;
    images_[tensor].is_given_made = true;
    const Shape first = TensorAt(tensor).shape;
    const int64_t channels = first.dim(1), line = first.dim(3) * channels;
    EmitTranspose(images_[tensor].last, tensor, first, {first.dim(2) * line, 1, line, channels});
  }

  void Assign(const DelegateNode& node, ParsedNode parsed) {
    const bool is_done = parsed.is_channels_first
                             ? TakeChannelsFirst(node, parsed)
                             : TakeTranspose(node, parsed) || (ReadsLast(node) && Follow(node, parsed));
    if (is_done) return;
    for (const int input : node.inputs) NeedGiven(input);
    Emit(node, std::move(parsed));
  }

  bool ReadsLast(const DelegateNode& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [this](int input) { return IsLast(input); });
  }

  bool TakeChannelsFirst(DelegateNode node, const ParsedNode& parsed) {
    const size_t data = static_cast<size_t>(parsed.kind == NodeKind::kElementwise ? parsed.left : parsed.data);
    node.inputs[data] = NeedLast(node.inputs[data]);
    node.outputs[0] = NewLast(node.outputs[0]);
    Emit(std::move(node), parsed);
    return true;
  }

  // Takes a Transpose from one layout to the other.
  bool TakeTranspose(const DelegateNode& node, const ParsedNode& parsed) {
    if (parsed.kind != NodeKind::kView || node.node->op() != ops::kTranspose || !IsImage(node.inputs[0])) return false;
    const std::optional<std::vector<int64_t>> order = Integers(node.inputs[1]);
    if (!order.has_value() || order->size() != kRank) return false;
    const auto is = [&](const std::array<int, kRank>& wanted) {
      for (int i = 0; i < kRank; ++i) {
        if (((*order)[i] + kRank) % kRank != wanted[i]) return false;
      }
      return true;
    };
    const int from = node.inputs[0], to = node.outputs[0];
    if (is({0, 3, 1, 2})) {
      NeedGiven(from);
      images_[to] = {false, from};
      return true;
    }
    if (!is({0, 2, 3, 1}) || images_[from].last == kNone) return false;
    EmitAlias(images_[from].last, to);
    return true;
  }

  // Returns the elements of an integer constant.
  std::optional<std::vector<int64_t>> Integers(int tensor) const {
    if (!IsConstant(tensor)) return std::nullopt;
    absl::StatusOr<std::vector<int64_t>> values = IntegerValues(*TensorAt(tensor).constant);
    if (!values.ok()) return std::nullopt;
    return *std::move(values);
  }

  // Makes a node that can compute in either layout do so with the channels last. Returns false for other nodes.
  bool Follow(const DelegateNode& node, const ParsedNode& parsed) {
    switch (parsed.kind) {
      case NodeKind::kAlias:
        return FollowAlias(node);
      case NodeKind::kElementwise:
      case NodeKind::kBroadcast:
        return FollowElementwise(node);
      case NodeKind::kConcat:
        return FollowConcat(node, parsed);
      case NodeKind::kPad:
        return FollowPad(node, parsed);
      case NodeKind::kReduce:
        return FollowReduction(node);
      case NodeKind::kView:
        return node.node->op() == ops::kSplit && FollowSplit(node);
      default:
        return false;
    }
  }

  bool FollowAlias(const DelegateNode& node) {
    const int from = node.inputs[0], to = node.outputs[0];
    if (TensorAt(from).shape == TensorAt(to).shape) {
      images_[to] = {false, images_[from].last};
      return true;
    }
    if (!IsSameOrder(TensorAt(from).shape)) return false;
    EmitAlias(images_[from].last, to);
    return true;
  }

  // The node with the channels last is parsed anew, since constants are broadcast in another way.
  bool FollowElementwise(const DelegateNode& given) {
    if (!IsImage(given.outputs[0])) return false;
    DelegateNode node = given;
    for (int& input : node.inputs) {
      if (TensorAt(input).dtype != DType::kFloat) return false;
      if (TensorAt(input).shape.num_elements() == 1) continue;
      if (IsConstant(input)) {
        const std::optional<Tensor> constant = TransposedConstant(*TensorAt(input).constant);
        if (!constant.has_value()) return false;
        input = AddConstant(*constant);
      } else if (IsImage(input)) {
        input = NeedLast(input);
      } else {
        return false;
      }
    }
    return EmitParsed(std::move(node), given.outputs[0], /*is_last=*/true);
  }

  // Emits a node that reads images with the channels last. Returns false, without changes, if it is not supported.
  bool EmitParsed(DelegateNode node, int output, bool is_last) {
    if (is_last) node.outputs[0] = AddLast(output);
    absl::StatusOr<ParsedNode> parsed = ParseNode(partition_, node);
    if (!parsed.ok()) return false;
    if (is_last) images_[output] = {false, node.outputs[0]};
    Emit(std::move(node), *std::move(parsed));
    return true;
  }

  bool FollowConcat(DelegateNode node, ParsedNode parsed) {
    if (!IsImage(node.outputs[0])) return false;
    const auto values = node.inputs.begin() + parsed.first_value;
    if (!std::all_of(values, values + parsed.num_values, [this](int value) { return IsImage(value); })) return false;
    for (int i = 0; i < parsed.num_values; ++i) {
      int& input = node.inputs[static_cast<size_t>(parsed.first_value + i)];
      input = NeedLast(input);
    }
    parsed.axis = kToLast[static_cast<size_t>(parsed.axis)];
    node.outputs[0] = NewLast(node.outputs[0]);
    Emit(std::move(node), std::move(parsed));
    return true;
  }

  bool FollowPad(DelegateNode node, ParsedNode parsed) {
    // Parsed as [N, H, W, C], the dimensions are height and width of what are channels and height.
    if (parsed.pad_top != 0 || parsed.pad_bottom != 0) return false;
    parsed.pad_top = std::exchange(parsed.pad_left, 0);
    parsed.pad_bottom = std::exchange(parsed.pad_right, 0);
    node.inputs[0] = NeedLast(node.inputs[0]);
    node.outputs[0] = NewLast(node.outputs[0]);
    Emit(std::move(node), std::move(parsed));
    return true;
  }

  bool FollowReduction(DelegateNode node) {
    const std::optional<std::vector<int64_t>> axes = Integers(node.inputs[1]);
    if (!axes.has_value() || !IsImage(node.inputs[0])) return false;
    std::array<bool, kRank> is_reduced = {};
    std::vector<int32_t> moved;
    for (const int64_t axis : *axes) {
      if (axis < -kRank || axis >= kRank) return false;
      const auto at = static_cast<size_t>((axis + kRank) % kRank);
      is_reduced[at] = true;
      moved.push_back(kToLast[at]);
    }
    const bool keeps_dims = TensorAt(node.outputs[0]).shape.rank() == kRank;
    // Without the reduced dimensions the order of the others must be that of the graph.
    if (!keeps_dims && !is_reduced[1] && !(is_reduced[2] && is_reduced[3])) return false;
    const Shape shape = {static_cast<int64_t>(moved.size())};
    node.inputs[0] = NeedLast(node.inputs[0]);
    node.inputs[1] = AddConstant(Tensor::FromVector<int32_t>(shape, std::move(moved)));
    const int output = node.outputs[0];
    return EmitParsed(std::move(node), output, keeps_dims);
  }

  bool FollowSplit(DelegateNode node) {
    const std::optional<std::vector<int64_t>> axes = Integers(node.inputs[0]);
    if (!axes.has_value() || axes->size() != 1 || !IsImage(node.inputs[1])) return false;
    const int64_t axis = (*axes)[0];
    if (axis < -kRank || axis >= kRank) return false;
    node.inputs[0] = AddConstant(Tensor::Scalar<int32_t>(kToLast[static_cast<size_t>((axis + kRank) % kRank)]));
    node.inputs[1] = NeedLast(node.inputs[1]);
    const std::vector<int> outputs = node.outputs;
    for (int& output : node.outputs) output = AddLast(output);
    absl::StatusOr<ParsedNode> parsed = ParseNode(partition_, node);
    if (!parsed.ok()) return false;
    for (size_t i = 0; i < outputs.size(); ++i) images_[outputs[i]] = {false, node.outputs[i]};
    Emit(std::move(node), *std::move(parsed));
    return true;
  }

  Partition& partition_;
  std::vector<ParsedNode>& nodes_;
  std::vector<Image> images_;     // By tensor.
  const Node* reader_ = nullptr;  // The node that is assigned, which names transposes.
};

}  // namespace

void AssignLayouts(Partition* partition, std::vector<ParsedNode>* nodes) {
  const auto is_changed = [&](size_t i) {
    return (*nodes)[i].is_channels_first ||
           ((*nodes)[i].kind == NodeKind::kView && partition->nodes[i].node->op() == ops::kTranspose);
  };
  for (size_t i = 0; i < nodes->size(); ++i) {
    if (is_changed(i)) return LayoutAssigner(partition, nodes).Run();
  }
}

}  // namespace onednn
}  // namespace permafrost
