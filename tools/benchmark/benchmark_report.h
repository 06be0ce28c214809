// Reports of benchmark_model: text in the format of TensorFlow's tool, and JSON.
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

// All results of one benchmark.
struct BenchmarkResult {
  std::string delegate;
  std::string precision;
  int num_threads = 0;
  bool is_tflite = false;   // The model is one of TensorFlow Lite.
  double load_seconds = 0;  // Time to read the model file.
  double init_seconds = 0;  // Time to create the session: checks, planning, packing of weights.
  TimedRuns warmup, plain, profiled;
  PlanReport plan;
  ProcessFacts before, after_init, after;
  std::vector<OutputSize> outputs;     // Outputs of the last warm-up run.
  std::vector<CounterValue> counters;  // From the phase without a profile, per run.
  std::optional<Roofline> roofline;
  std::optional<BaselineVerdict> baseline;
  std::vector<std::string> notes;  // Warnings about the reliability of the numbers.
  bool was_interrupted = false;
};

// Returns "median=5110 mean_without_outliers=5121 p90=... p99=... ...", in microseconds.
std::string RobustLine(const Sample& seconds);

// Returns why the times of a phase are unreliable in their last digits, or nothing. Needs at least 10 runs.
std::optional<std::string> NoiseNote(const Sample& seconds, int64_t involuntary_switches);

// Prints warnings about the reliability of the numbers, one per line.
void PrintWarnings(const std::vector<std::string>& notes, const Console& console);

// Prints the lines before the first run.
void PrintBenchmarkHead(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                        const BenchmarkResult& result, std::ostream& out);

// Prints the phases, the tables, sizes and FLOPs. `summary` is null without a profile.
void PrintBenchmark(const BenchmarkModelOptions& options, const BenchmarkResult& result, const ProfileSummary* summary,
                    const NodeCosts& costs, const Console& console);

// Writes the statistics of times as an object.
void WriteSample(const Sample& seconds, JsonWriter* json);

// Writes all results as members of an object that the caller begins and ends.
void WriteBenchmark(const BenchmarkSubject& subject, const std::string& model, const BenchmarkResult& result,
                    const ProfileSummary* summary, const NodeCosts& costs, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_BENCHMARK_BENCHMARK_REPORT_H_
