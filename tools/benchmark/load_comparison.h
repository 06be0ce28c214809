// benchmark_model --with_load: measures latency alone and under background load, by number of threads.
#ifndef PERMAFROST_TOOLS_BENCHMARK_LOAD_COMPARISON_H_
#define PERMAFROST_TOOLS_BENCHMARK_LOAD_COMPARISON_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime_check/profiling/run_statistics.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/timed_runs.h"

namespace permafrost {

// Latencies with one number of threads.
struct LoadedTimes {
  int num_threads = 0;
  Sample alone, disturbed;  // Seconds.
};

struct LoadComparison {
  int load_threads = 0;
  std::vector<LoadedTimes> times;  // One entry per number of threads.
  bool was_interrupted = false;
};

// Measures latency with each of `threads`, within `limits`, alone and while `load_threads` other threads work.
// `options` holds everything but the number of threads.
absl::StatusOr<LoadComparison> CompareUnderLoad(const BenchmarkSubject& subject, const SessionOptions& options,
                                                const std::vector<int>& threads, int load_threads,
                                                const RunLimits& limits, const Console& console);

void PrintLoadComparison(const LoadComparison& comparison, const Console& console);
void WriteLoadComparison(const LoadComparison& comparison, JsonWriter* json);

// Returns 1, 2, 4 ... and `most`.
std::vector<int> ThreadCounts(int most);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_LOAD_COMPARISON_H_
