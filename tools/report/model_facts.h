// What a report says of one model: what is in the file, and what a run of it showed.
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

// A node that is drawn: all but constants, also those that an Identity passes on, which belong to what reads them.
struct NodeFacts {
  const Node* node = nullptr;
  std::string output;         // Type and shape of its first output: "float [1,112,112,32]".
  uint64_t weight_bytes = 0;  // Of the constants that it reads, also by way of nodes that unpack them.
  uint64_t output_bytes = 0;
  uint64_t flops = 0;
  std::optional<double> seconds;  // In the fastest profiled run; absent where it is fused to another, or computed
                                  // before the run.
  std::optional<double> sqnr_db;  // Against the first model; infinite where nothing differs.
};

struct ConstantFacts {
  const Node* node = nullptr;
  std::string type;  // "float [3,3,3,32]".
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
  std::vector<std::string> inputs, outputs;          // "image: float [1,224,224,3]".
  std::vector<std::pair<std::string, int64_t>> ops;  // Most frequent first.
  std::vector<TypeTotal> weights_by_type;            // Largest first.
  std::vector<NodeFacts> nodes;                      // In an order in which they can run; else in that of the file.
  std::vector<ConstantFacts> constants;              // Largest first; only the largest have histograms.
  // Between `nodes`, once for each pair.
  std::vector<std::pair<int32_t, int32_t>> edges;
  std::optional<GraphLayout> layout;  // Absent for a graph beyond kMostDrawnNodes.
  std::vector<std::string> notes;     // What is left out, and why.
};

// More are not drawn: nobody could read them, and the page would not open.
inline constexpr size_t kMostDrawnNodes = 20000;

// Of a graph whose interface is declared. `fed` as of NodeCosts.
GraphFacts CollectGraphFacts(const Graph& graph, const absl::flat_hash_map<std::string, Shape>& fed);

// What running showed.
struct RunFacts {
  Sample seconds;                                               // Of a run, measured in turn with the other models.
  std::vector<std::pair<std::string, double>> seconds_by_type;  // Of a profiled run; the slowest type first.
  double profiled_seconds = 0;                                  // All of them together: of the fastest run.
  int64_t arena_bytes = 0;
  std::vector<MemoryPoint> memory;  // While that run lasts.
  std::vector<std::string> notes;
};

// How near the answers are to the first model's, and to the truth.
struct QualityFacts {
  std::optional<double> accuracy;   // The share of right answers, where there are labels.
  std::optional<double> agreement;  // The share of rows whose largest element is where the first model has it.
  std::optional<double> sqnr_db;    // The least of all outputs.
  std::vector<std::string> notes;
};

struct ModelFacts {
  std::string name;  // What the report calls it.
  std::string path;
  uint64_t file_bytes = 0;
  GraphFacts graph;
  std::optional<RunFacts> run;
  std::optional<QualityFacts> quality;
};

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_REPORT_MODEL_FACTS_H_
