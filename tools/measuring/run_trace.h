// Writes one run as a trace for chrome://tracing and ui.perfetto.dev.
#ifndef PERMAFROST_TOOLS_MEASURING_RUN_TRACE_H_
#define PERMAFROST_TOOLS_MEASURING_RUN_TRACE_H_

#include <ostream>
#include <string>

#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/threads/thread_activity.h"
#include "tools/measuring/node_costs.h"

namespace permafrost {

// Writes the last run of the profiler in the JSON of Chrome's Trace Event Format. The session's thread shows
// partitions, their pieces, nodes and function bodies, nested. The other threads of the pool show their work by node
// (`work`, of that run). A counter shows the bytes of live tensors. Times are microseconds since the start of the run.
void WriteTrace(const Profiler& profiler, absl::Span<const ThreadWork> work, const Graph& graph, const NodeCosts& costs,
                const std::string& model, std::ostream& out);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_RUN_TRACE_H_
