// What benchmark_model found, as text in the original's lines and as JSON.
#ifndef PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_REPORT_H_
#define PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_REPORT_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime_check/planning/plan.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/profiling/run_statistics.h"
#include "tools/benchmark/benchmark_flags.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/benchmark_baseline.h"
#include "tools/measuring/hardware_counters.h"
#include "tools/measuring/node_costs.h"
#include "tools/measuring/process_facts.h"
#include "tools/measuring/roofline.h"
#include "tools/measuring/timed_runs.h"

namespace permafrost {

// For --show_sizes.
struct OutputSize {
  std::string name;
  Tensor tensor;
};

struct BenchmarkResult {
  std::string delegate;
  std::string precision;
  int num_threads = 0;
  double load_seconds = 0;  // Of the model file.
  double init_seconds = 0;  // Of the session: checks, planning, packing of weights.
  TimedRuns warmup, plain, profiled;
  PlanReport plan;
  ProcessFacts before, after_init, after;
  std::vector<OutputSize> outputs;     // Of the last warm-up run.
  std::vector<CounterValue> counters;  // Of the phase without a profile, a run each.
  std::optional<Roofline> roofline;
  std::optional<BaselineVerdict> baseline;
  std::vector<std::string> notes;  // What the user should know before believing the numbers.
  bool was_interrupted = false;
};

// "median=5110 mean_without_outliers=5121 p90=... p99=... ...": in microseconds.
std::string RobustLine(const Sample& seconds);

// Why the times of a phase should not be believed to the last digit, or nothing. Needs 10 runs or more.
std::optional<std::string> NoiseNote(const Sample& seconds, int64_t involuntary_switches);

// What the user should know before believing the numbers, a line each.
void PrintWarnings(const std::vector<std::string>& notes, const Console& console);

// The lines before the first run.
void PrintBenchmarkHead(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                        const BenchmarkResult& result, std::ostream& out);

// The phases, the tables, sizes and FLOPs. `summary` is null without a profile.
void PrintBenchmark(const BenchmarkModelOptions& options, const BenchmarkResult& result, const ProfileSummary* summary,
                    const NodeCosts& costs, const Console& console);

// The statistics of times, as an object.
void WriteSample(const Sample& seconds, JsonWriter* json);

// Everything, as members of an object that the caller has begun and ends.
void WriteBenchmark(const BenchmarkSubject& subject, const std::string& model, const BenchmarkResult& result,
                    const ProfileSummary* summary, const NodeCosts& costs, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_REPORT_H_
