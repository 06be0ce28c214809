// Estimates the arithmetic of one inference.
#include "tools/summary/flops.h"

#include <algorithm>
#include <map>

#include "graph/analysis/node_flops.h"

namespace permafrost {

bool CountFlops(const Node& node, const ShapeMap& shapes, std::optional<uint64_t>* flops) {
  const auto input = [&](int i) {
    return i < node.num_data_inputs() ? shapes.Of(node.input(i)) : Shape::UnknownRank();
  };
  const absl::Span<const Shape> outputs = shapes.OutputsOf(node);
  return CountNodeFlops(node, input, outputs.empty() ? Shape::UnknownRank() : outputs[0], flops);
}

absl::StatusOr<ShapeMap> ShapesToCount(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed) {
  ShapeInferenceOptions options;
  options.fed = fed;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kPlaceholder) continue;
    absl::StatusOr<Shape> shape = ShapeAttr(*node, "shape");
    if (!shape.ok() || !shape->has_rank() || shape->rank() == 0 || shape->dim(0) != kUnknownDim) continue;
    shape->set_dim(0, 1);
    options.fed.emplace(std::string(node->name()), *std::move(shape));
  }
  return InferShapes(graph, options);
}

FlopsEstimate EstimateFlops(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed) {
  FlopsEstimate estimate;
  const absl::StatusOr<ShapeMap> shapes = ShapesToCount(graph, fed);
  estimate.status = shapes.status();
  if (!shapes.ok()) return estimate;
  std::map<std::string, uint64_t> by_op;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    std::optional<uint64_t> flops;
    if (!CountFlops(*node, *shapes, &flops)) continue;
    if (!flops.has_value() || __builtin_add_overflow(estimate.total, *flops, &estimate.total)) {
      ++estimate.num_unknown;
    } else {
      by_op[std::string(node->op().name())] += *flops;
    }
  }
  estimate.by_op.assign(by_op.begin(), by_op.end());
  std::stable_sort(estimate.by_op.begin(), estimate.by_op.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return estimate;
}

}  // namespace permafrost
