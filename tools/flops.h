// Estimates the arithmetic of one inference from static shapes.
#ifndef PERMAFROST_TOOLS_FLOPS_H_
#define PERMAFROST_TOOLS_FLOPS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace permafrost {

struct FlopsEstimate {
  // A multiplication and an addition count as two, of convolutions and matrix products; the rest is small beside them.
  uint64_t total = 0;
  std::vector<std::pair<std::string, uint64_t>> by_op;  // Largest first.
  // Nodes of such ops whose shapes are not known.
  size_t num_unknown = 0;
  // Not OK when shapes could not be inferred; nothing is counted then.
  absl::Status status;
};

// Inputs with an unknown first dimension are taken for batches of one.
FlopsEstimate EstimateFlops(const Graph& graph);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_FLOPS_H_
