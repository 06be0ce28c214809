// Estimates the arithmetic of one inference from static shapes.
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
  // A multiplication and an addition count as two, of convolutions and matrix products; the rest is small beside them.
  uint64_t total = 0;
  std::vector<std::pair<std::string, uint64_t>> by_op;  // Largest first.
  // Nodes of such ops whose shapes are not known, and calls of functions whose bodies cannot be counted.
  size_t num_unknown = 0;
  // Not OK when shapes could not be inferred; nothing is counted then.
  absl::Status status;
};

// Bodies of functions count at each call: of an If or Case the branch that takes most, of a While one iteration.
// Inputs with an unknown first dimension are taken for batches of one. `fed` has the shapes that are really fed, by the
// name of the node.
FlopsEstimate EstimateFlops(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed = {});

// Whether the op is one that is counted; *flops gets what one run of the node takes, and stays empty where shapes are
// missing or the number is beyond 64 bits.
bool CountFlops(const Node& node, const ShapeMap& shapes, std::optional<uint64_t>* flops);
// The shapes that EstimateFlops counts with.
absl::StatusOr<ShapeMap> ShapesToCount(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_FLOPS_H_
