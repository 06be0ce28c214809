// Simulates a run in half or bfloat16: every activation and every weight is rounded, sums are as precise as in float.
#ifndef PERMAFROST_TOOLS_VALIDATION_HALF_SIMULATION_H_
#define PERMAFROST_TOOLS_VALIDATION_HALF_SIMULATION_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session_options.h"
#include "tools/validation/batch_source.h"

namespace permafrost {

// A graph in which each float tensor, constants included, is rounded to another type before it is read, and by original
// tensor ("node" or "node:1", in topological order) the tensor that holds the rounded values.
struct RoundedGraph {
  std::unique_ptr<Graph> graph;
  std::vector<std::pair<std::string, std::string>> tensors;
};

// Inserts a Cast to `dtype` and back behind each float tensor. Nodes of V1 control flow, and the bodies of functions,
// stay as they are. Errors are those of a cyclic graph.
absl::StatusOr<RoundedGraph> RoundTensors(const Graph& graph, DType dtype);

// One tensor of the simulated run, compared with the run in float.
struct SimulatedTensor {
  std::string name;
  std::string op;
  double largest = 0;           // Largest finite magnitude in float.
  bool is_beyond = false;       // `largest` is rounded to infinity.
  OutputDifference difference;  // Over all batches.
};

struct HalfSimulation {
  DType dtype = DType::kHalf;
  double limit = 0;  // The largest finite number of the type.
  size_t num_batches = 0;
  std::vector<SimulatedTensor> outputs;
  std::vector<SimulatedTensor> beyond;  // All tensors whose values exceed the range, in topological order.
  // The first tensor that JudgeQuality() calls ruined by its own scale; none if all outputs are fine.
  std::optional<SimulatedTensor> lost;
  bool covers_inner_tensors = true;  // False if only outputs could be compared.
};

// Runs `graph`, whose interface is declared, in float and rounded, on at most `most_batches` of `source`. `dtype` is
// half or bfloat16. Errors are those of Session and the source.
absl::StatusOr<HalfSimulation> SimulateHalf(const Graph& graph, DType dtype, BatchSource& source, size_t most_batches,
                                            const SessionOptions& options);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_VALIDATION_HALF_SIMULATION_H_
