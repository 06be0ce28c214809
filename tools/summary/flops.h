// Estimates the FLOPs of one inference from static shapes.
#ifndef PERMAFROST_TOOLS_SUMMARY_FLOPS_H_
#define PERMAFROST_TOOLS_SUMMARY_FLOPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/shapes/shape_inference.h"

namespace permafrost {

struct FlopsEstimate {
  // Counts convolutions and matrix products, with two FLOPs per multiply-add; other ops are negligible beside them.
  uint64_t total = 0;
  std::vector<std::pair<std::string, uint64_t>> by_op;  // Largest first.
  // Nodes of counted ops with unknown shapes, and calls of functions whose bodies cannot be counted.
  size_t num_unknown = 0;
  // Not OK if shapes could not be inferred; nothing is counted then.
  absl::Status status;
};

// Estimates FLOPs. The body of a function counts at each call: the most expensive branch of an If or Case, one
// iteration of a While. An unknown first dimension of an input is taken as a batch of one. `fed` holds the shapes of
// fed inputs by node name.
FlopsEstimate EstimateFlops(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed = {});

// Returns whether the op is counted. Sets *flops to the FLOPs of one run of the node, or leaves it empty if shapes are
// missing or the number exceeds 64 bits.
bool CountFlops(const Node& node, const ShapeMap& shapes, std::optional<uint64_t>* flops);
// Returns the shapes that EstimateFlops uses.
absl::StatusOr<ShapeMap> ShapesToCount(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_FLOPS_H_
