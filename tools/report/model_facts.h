// The facts of a report about one model: contents of the file, and results of a run.
#ifndef PERMAFROST_TOOLS_REPORT_MODEL_FACTS_H_
#define PERMAFROST_TOOLS_REPORT_MODEL_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "runtime_check/profiling/run_statistics.h"
#include "tools/measuring/memory_timeline.h"
#include "tools/report/graph_layout.h"
#include "tools/report/weight_histogram.h"

namespace permafrost {

// The type of a tensor, and its shape if that is known: "float [1,112,?,32]".
struct TensorType {
  DType dtype = DType::kInvalid;
  std::optional<Shape> shape;  // Absent where no shapes could be inferred.

  std::string ToString() const;
};

// A declared input or output.
struct EndpointFacts {
  std::string name;
  std::optional<TensorType> type;  // Absent for an op without a schema.
};

// A node in the drawing. Constants are not drawn, nor are Identities of constants: they belong to their readers.
struct NodeFacts {
  const Node* node = nullptr;
  std::optional<TensorType> output;  // Its first output; absent if there is none, or if the op has no schema.
  uint64_t weight_bytes = 0;         // Of the constants that it reads, directly or through nodes that unpack them.
  uint64_t output_bytes = 0;
  uint64_t flops = 0;
  std::optional<double> seconds;  // In the fastest profiled run; absent where it is fused to another, or computed
                                  // before the run.
  std::optional<double> sqnr_db;  // SQNR relative to the first model; infinite if nothing differs.
};

struct ConstantFacts {
  const Node* node = nullptr;
  TensorType type;
  uint64_t bytes = 0;
  std::optional<WeightHistogram> histogram;
};

struct TypeTotal {
  std::string type;
  int64_t count = 0;
  uint64_t bytes = 0;
};

struct GraphFacts {
  size_t num_nodes = 0;
  int64_t num_parameters = 0;
  uint64_t weight_bytes = 0;
  uint64_t flops = 0;
  std::vector<EndpointFacts> inputs, outputs;
  std::vector<std::pair<std::string, int64_t>> ops;  // Most frequent first.
  std::vector<TypeTotal> weights_by_type;            // Largest first.
  std::vector<NodeFacts> nodes;                      // In a topological order if there is one; else in file order.
  std::vector<ConstantFacts> constants;              // Largest first; only the largest have histograms.
  // Between `nodes`, one per pair.
  std::vector<std::pair<int32_t, int32_t>> edges;
  std::optional<GraphLayout> layout;  // Absent for a graph larger than kMostDrawnNodes.
  std::vector<std::string> notes;     // Omitted parts, with reasons.
};

// Larger graphs are not drawn: they would be unreadable, and browsers could not open the page.
inline constexpr size_t kMostDrawnNodes = 20000;

// Returns the facts of a graph with a declared interface. `fed` is that of NodeCosts.
GraphFacts CollectGraphFacts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

// Results of running a model.
struct RunFacts {
  Sample seconds;  // Seconds per run, measured in alternation with the other models.
  std::vector<std::pair<std::string, double>> seconds_by_type;  // Of a profiled run; the slowest type first.
  double profiled_seconds = 0;                                  // All nodes of the fastest run.
  int64_t arena_bytes = 0;
  std::vector<MemoryPoint> memory;    // During that run.
  std::vector<std::string> warnings;  // Reasons not to trust the model or the numbers.
  std::vector<std::string> notes;     // Omitted parts, with reasons.
};

// Accuracy relative to the first model and to the labels.
struct QualityFacts {
  std::optional<double> accuracy;            // The share of correct rows, if there are labels.
  std::optional<double> agreement;           // The share of rows with the same largest element as the first model.
  std::optional<double> sqnr_db;             // The minimum over all outputs.
  std::vector<std::string> warnings, notes;  // As in RunFacts.
};

struct ModelFacts {
  std::string name;  // The name of the model in the report.
  std::string path;
  uint64_t file_bytes = 0;
  GraphFacts graph;
  std::optional<RunFacts> run;
  std::optional<QualityFacts> quality;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_MODEL_FACTS_H_
