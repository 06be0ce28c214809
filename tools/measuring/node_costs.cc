// Computes costs from static shapes.
#include "tools/measuring/node_costs.h"

#include <optional>
#include <vector>

#include "graph/dtype.h"
#include "graph/ops/op_schema.h"

namespace permafrost {
namespace {

// Returns the size in bytes; 0 if it is unknown.
uint64_t Bytes(DType dtype, const Shape& shape) {
  if (!shape.IsFullyKnown()) return 0;
  const absl::StatusOr<int64_t> elements = shape.CheckedNumElements();
  uint64_t bytes;
  if (!elements.ok() ||
      __builtin_mul_overflow(static_cast<uint64_t>(*elements), uint64_t{SizeOf(RemoveRef(dtype))}, &bytes)) {
    return 0;
  }
  return bytes;
}

// Also true for a constant behind nodes that only pass it on, as in frozen variables.
bool IsConstant(const Node* node) {
  for (int hops = 0; hops < 8; ++hops) {
    if (node->op() == ops::kConst) return true;
    if (node->op() != ops::kIdentity || node->num_data_inputs() != 1) return false;
    node = node->input(0).node;
  }
  return false;
}

}  // namespace

NodeCosts::NodeCosts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed)
    : flops_(EstimateFlops(graph, fed)) {
  const absl::StatusOr<ShapeMap> shapes = ShapesToCount(graph, fed);
  std::vector<std::vector<DType>> types(graph.id_limit());
  by_name_.reserve(graph.num_nodes());
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    types[node->id()] = OutputTypes(*node).value_or(std::vector<DType>());
  }
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    NodeCost& cost = by_name_[std::string(node->name())];
    cost.op = std::string(node->op().name());
    if (!shapes.ok()) continue;
    std::optional<uint64_t> flops;
    if (CountFlops(*node, *shapes, &flops)) cost.flops = flops.value_or(0);
    const auto bytes = [&](TensorRef ref) {
      const std::vector<DType>& of = types[ref.node->id()];
      return static_cast<size_t>(ref.port) < of.size() ? Bytes(of[static_cast<size_t>(ref.port)], shapes->Of(ref)) : 0;
    };
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const uint64_t read = bytes(node->input(i));
      cost.input_bytes += read;
      if (IsConstant(node->input(i).node)) cost.weight_bytes += read;
    }
    const std::vector<DType>& own = types[node->id()];
    const absl::Span<const Shape> outputs = shapes->OutputsOf(*node);
    for (size_t i = 0; i < outputs.size() && i < own.size(); ++i) cost.output_bytes += Bytes(own[i], outputs[i]);
  }
}

const NodeCost* NodeCosts::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

const NodeCost* NodeCosts::Find(const ProfileLabel& label) const {
  if (!label.function.empty() || label.kind == ProfileLabel::Kind::kPartition) return nullptr;
  return Find(label.kind == ProfileLabel::Kind::kPiece ? NodeOfPiece(label.name) : absl::string_view(label.name));
}

absl::string_view NodeOfPiece(absl::string_view piece) { return piece.substr(0, piece.find(": ")); }

}  // namespace permafrost
