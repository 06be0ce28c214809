// One run as a trace that chrome://tracing and ui.perfetto.dev show.
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

// The last run of the profiler, in the JSON of Chrome's Trace Event Format: the session's thread with partitions, their
// pieces, nodes and the bodies of functions, one inside the other, the other threads of its team with what they did of
// which node (`work`, of that run), and a counter of the bytes of tensors that are still needed. Times are microseconds
// after the run began.
void WriteTrace(const Profiler& profiler, absl::Span<const ThreadWork> work, const Graph& graph, const NodeCosts& costs,
                const std::string& model, std::ostream& out);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_RUN_TRACE_H_
