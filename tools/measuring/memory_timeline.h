// How many bytes of tensors are still needed, while a run lasts.
#ifndef PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_
#define PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "runtime_check/profiling/profiler.h"
#include "tools/measuring/node_costs.h"

namespace permafrost {

struct MemoryPoint {
  int64_t time_ns = 0;  // Since the run began.
  int64_t bytes = 0;    // From then on.
};

// A tensor lives from the start of the node that makes it to the end of the last that reads it; one that is read by
// nodes that are fused into others, to that of what reads those. In the order of time; empty for a graph with a cycle.
std::vector<MemoryPoint> LivingBytes(const Profiler& profiler, const ProfileRun& run, const Graph& graph,
                                     const NodeCosts& costs);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_MEMORY_TIMELINE_H_
