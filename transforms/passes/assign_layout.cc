// Gives all images of a graph one data format, with the fewest elements transposed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/minimum_cut.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/layout_ops.h"
#include "transforms/rewrites/permutation.h"
#include "transforms/rewrites/redirection.h"
#include "transforms/rewrites/splicing.h"
#include "transforms/rewrites/transposed_region.h"

namespace permafrost {
namespace {

constexpr int kRank = 4;
// Visits of edges for the cut, about ten seconds. Networks take less than 10^7.
constexpr int64_t kMostSteps = 1'000'000'000;

struct Params {
  std::string format = std::string(kChannelsLast);
};

// Decides which nodes change their order. A change of a layout op is forced; other nodes follow it where that costs
// less.
class LayoutCut {
 public:
  // `order` is that of the Transpose nodes from the new order to the old one.
  LayoutCut(Graph* graph, const ShapeMap& shapes, Permutation order, std::vector<Node*> layout_ops)
      : graph_(graph), shapes_(shapes), order_(std::move(order)), inverse_(Inverse(order_)), nodes_(layout_ops) {
    for (const Node* node : layout_ops) vertices_.emplace(node, MinimumCut::kSource);
  }

  // Returns the nodes that change, layout ops first; the layout ops alone if the cut takes too long.
  std::vector<Node*> Find() {
    const size_t num_layout_ops = nodes_.size();
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      if (vertices_.contains(node) || !MayChangeOrder(*node, kRank, *graph_, shapes_)) continue;
      vertices_.emplace(node, cut_.AddVertex());
      nodes_.push_back(node);
    }
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) AddTensor(node);
    const auto is_changed = cut_.Find(kMostSteps);
    if (!is_changed.has_value()) {
      nodes_.resize(num_layout_ops);
      return nodes_;
    }
    std::vector<Node*> changed;
    for (Node* node : nodes_) {
      if ((*is_changed)[vertices_[node]]) changed.push_back(node);
    }
    return changed;
  }

 private:
  // Returns the side of a node that reads or makes an image: a Transpose has the side on which it is not needed.
  int VertexOf(const Node& node, const Permutation& not_needed) const {
    const auto found = vertices_.find(&node);
    if (found != vertices_.end()) return found->second;
    const bool is_free = !graph_->IsEndpoint(&node) && node.num_data_inputs() == 2 && OrderOf(node) == not_needed;
    return is_free ? MinimumCut::kSource : MinimumCut::kSink;
  }

  int VertexOfUse(const Use& use) const {
    const LayoutOperands* operands = FindLayoutOperands(use.consumer->op());
    if (operands != nullptr && static_cast<int>(use.index) != operands->image) return MinimumCut::kSink;
    if (use.consumer->op() == ops::kTranspose && use.index != 0) return MinimumCut::kSink;
    return VertexOf(*use.consumer, inverse_);
  }

  // Adds the costs of output 0 of a node: one Transpose serves all readers of the other order.
  void AddTensor(Node* node) {
    if (node->op() == ops::kConst || ConstantBehind({node, 0}) != nullptr) return;
    const int maker = VertexOf(*node, order_);
    const int64_t cost = CostOf({node, 0});
    const int old_order = cut_.AddVertex(), new_order = cut_.AddVertex();
    bool has_readers = false;
    for (const Use& use : node->uses()) {
      const TensorRef input = use.consumer->input(static_cast<int>(use.index));
      if (input.is_control() || input.port != 0) continue;
      const int reader = VertexOfUse(use);
      if (maker == MinimumCut::kSink && reader == MinimumCut::kSink) continue;
      has_readers = true;
      cut_.AddEdge(old_order, reader, MinimumCut::kInfinite);
      cut_.AddEdge(reader, new_order, MinimumCut::kInfinite);
    }
    if (!has_readers) return;
    cut_.AddEdge(maker, old_order, cost);
    cut_.AddEdge(new_order, maker, cost);
  }

  // The elements of a tensor, where an unknown dimension counts as 1, and one for the node itself.
  int64_t CostOf(TensorRef ref) const {
    const Shape shape = shapes_.Of(ref);
    int64_t cost = 1;
    constexpr int64_t kMost = int64_t{1} << 40;
    for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) {
      cost = std::min(kMost, cost * std::clamp<int64_t>(shape.dim(i), 1, kMost / cost));
    }
    return cost + 1;
  }

  Graph* graph_;
  const ShapeMap& shapes_;
  const Permutation order_, inverse_;
  std::vector<Node*> nodes_;
  absl::flat_hash_map<const Node*, int> vertices_;
  MinimumCut cut_;
};

// Returns OK if the node is a layout op of another format that can change.
absl::Status CheckLayoutOp(const Node& node, const Graph& graph, const ShapeMap& shapes) {
  const LayoutOperands& operands = *FindLayoutOperands(node.op());
  if (graph.IsEndpoint(&node)) return NotMatched("is a declared input or output, which keeps its order", "");
  if (node.num_data_inputs() <= std::max(operands.image, operands.parameter)) {
    return NotMatched("has too few inputs", "");
  }
  PF_RETURN_IF_ERROR(CanSetFormat(node));
  const Shape shape = shapes.Of(node.input(operands.image));
  if (node.op() == ops::kBiasAdd && !shape.has_rank()) {
    return NotMatched("reads a tensor of unknown rank", "give the input a shape");
  }
  return MayChangeParameter(node, kRank);
}

absl::StatusOr<int64_t> AssignLayout(Graph* graph, const Params& params, PassContext* context) {
  if (params.format != kChannelsLast && params.format != kChannelsFirst) {
    return absl::InvalidArgumentError(absl::StrCat("format: found '", params.format, "', expected NHWC or NCHW"));
  }
  PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(*graph));
  std::vector<Node*> layout_ops;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    const LayoutOperands* operands = FindLayoutOperands(node->op());
    if (operands == nullptr || node->num_data_inputs() <= operands->image) continue;
    const absl::StatusOr<std::string> format = FormatOf(*node);
    const Shape shape = shapes.Of(node->input(operands->image));
    if (shape.has_rank() && shape.rank() != kRank) continue;
    if (!format.ok()) {
      context->Miss(*node, format.status());
    } else if (*format != params.format) {
      const absl::Status may_change = CheckLayoutOp(*node, *graph, shapes);
      if (may_change.ok()) {
        layout_ops.push_back(node);
      } else {
        context->Miss(*node, may_change);
      }
    }
  }
  if (layout_ops.empty()) return 0;
  const Permutation to_first = {0, 3, 1, 2}, to_last = {0, 2, 3, 1};
  const Permutation& order = params.format == kChannelsLast ? to_first : to_last;
  const size_t num_layout_ops = layout_ops.size();
  std::vector<Node*> changed = LayoutCut(graph, shapes, order, std::move(layout_ops)).Find();
  const std::vector<const Node*> matched(changed.begin(), changed.end());
  const RewriteScope rewrite(context, graph, matched);
  if (!rewrite) return 0;
  const size_t num_changed = changed.size();
  PF_RETURN_IF_ERROR(TransposedRegion(graph, shapes, std::move(changed), order, params.format).ChangeOrder());
  std::vector<Node*> unread;
  for (Node* node = graph->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kTranspose && node->uses().empty()) unread.push_back(node);
  }
  PF_RETURN_IF_ERROR(RemoveUnread(graph, std::move(unread)).status());
  context->Note(absl::StrCat(num_layout_ops, " nodes compute in ", params.format, ", and ",
                             num_changed - num_layout_ops, " nodes between them follow"));
  return 1;
}

}  // namespace

// Gives all images of a graph one data format.
//
//   Conv2D(Relu(Conv2D(x, f, NCHW)), g, NCHW)
//       =>   Transpose(Conv2D(Relu(Conv2D(Transpose(x, NHWC), f, NHWC)), g, NHWC), NCHW)
//
// Convolutions, poolings, batch norms, biases, DepthToSpace and SpaceToDepth with another data_format are changed.
// Elementwise ops, AddN, ConcatV2, Pad, and reductions that keep their dimensions follow where that transposes fewer
// elements: a minimum cut of the graph, in which each edge between the two orders costs the size of its tensor, once
// for all readers. Constants, axes and paddings are permuted, and Transpose nodes that are no longer needed disappear.
//
// Leaves unchanged declared inputs and outputs, which keep their order, and nodes whose parameters are not constant.
DEFINE_PASS(assign_layout) {
  return Pass<Params>("Gives all images one data format, with the fewest elements transposed.")
      .Why(
          "Runtimes and converters for processors want NHWC, others NCHW; a model in the other format, or in both, "
          "runs "
          "in slower kernels or through a Transpose at each change.")
      .Param("format", &Params::format, "The data format: NHWC or NCHW.")
      .Numerics(Within(1e-5))  // Sums are added in another order.
      .Idempotent()
      .Run(AssignLayout);
}

}  // namespace permafrost
