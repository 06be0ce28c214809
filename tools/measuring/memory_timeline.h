// Bytes of live tensors over the time of a run.
#ifndef PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_
#define PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "runtime_check/profiling/profiler.h"
#include "tools/measuring/node_costs.h"

namespace permafrost {

struct MemoryPoint {
  int64_t time_ns = 0;  // Since the start of the run.
  int64_t bytes = 0;    // Live bytes from then on.
};

// Returns the points in order of time; empty for a graph with a cycle. A tensor lives from the start of its producer to
// the end of its last reader. If a reader is fused into another node, the tensor lives to the end of the readers of the
// fused node.
std::vector<MemoryPoint> LivingBytes(const Profiler& profiler, const ProfileRun& run, const Graph& graph,
                                     const NodeCosts& costs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_
