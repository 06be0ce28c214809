// Prints the results of a benchmark.
#include "tools/benchmark/benchmark_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime_check/delegates/delegate_options.h"
#include "tools/summary/summary_format.h"

namespace permafrost {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kBytesInMegabyte = 1e6;
// Times of a phase above these limits count as noisy. If the interquartile range exceeds a tenth of the median,
// relevant differences disappear in the noise.
constexpr double kNoisySpread = 0.1;
// Fewer runs do not measure the noise.
constexpr size_t kFewestForNoise = 10;

// Returns "-1.0" or "0.5", the format of TensorFlow's flags.
std::string Seconds(double value) {
  const std::string text = absl::StrCat(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string Dimensions(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  return absl::StrJoin(dims, ",");
}

RunningStat MicrosecondStat(const TimedRuns& runs) {
  RunningStat stat;
  for (const double seconds : runs.seconds) stat.Add(static_cast<int64_t>(std::llround(seconds * kMicroseconds)));
  return stat;
}

void PrintPhase(int64_t max_runs, double max_seconds, double delay, bool with_stats, const TimedRuns& runs,
                std::ostream& out) {
  out << "Running benchmark for max " << max_runs << " iterations, max " << max_seconds << " seconds with"
      << (with_stats ? "" : "out") << " detailed stat logging, with " << delay << "s sleep between inferences\n"
      << MicrosecondStat(runs).ToString() << "\n\n";
}

void PrintSizes(const std::vector<OutputSize>& outputs, std::ostream& out) {
  out << "============ Output tensor sizes ========\n";
  for (const OutputSize& output : outputs) {
    const Shape& shape = output.tensor.shape();
    out << Printable(output.name) << "\t1\t" << DTypeName(output.tensor.dtype()) << "\t" << shape.rank() << "\t"
        << Dimensions(shape) << "\n";
  }
  out << "\n";
}

void PrintCounters(const std::vector<CounterValue>& counters, std::ostream& out) {
  if (counters.empty()) return;
  double cycles = 0, instructions = 0;
  out << "Hardware counters (a run):";
  for (const CounterValue& counter : counters) {
    out << " " << absl::StrReplaceAll(counter.name, {{" ", "_"}}) << "="
        << HumanCount(static_cast<int64_t>(counter.count));
    if (counter.name == "cycles") cycles = counter.count;
    if (counter.name == "instructions") instructions = counter.count;
  }
  if (cycles > 0 && instructions > 0) out << absl::StrFormat(" instructions_per_cycle=%.2f", instructions / cycles);
  out << "\n";
}

double PerSecond(uint64_t flops, const BenchmarkResult& result) {
  const double median = Sample(result.plain.seconds).median();
  return median > 0 ? static_cast<double>(flops) / median : 0;
}

void WriteTypes(const ProfileSummary& summary, JsonWriter* json) {
  const auto runs = static_cast<double>(std::max<int64_t>(1, summary.num_runs()));
  json->Key("types").BeginArray();
  for (const ProfileType& type : summary.Types()) {
    json->BeginObject();
    json->Key("type").Text(type.type);
    json->Key("nodes").Integer(type.num_rows);
    json->Key("mean_seconds").Number(type.total_us / runs / kMicroseconds);
    json->Key("bytes").Integer(type.memory);
    json->End();
  }
  json->End();
}

void WriteNodes(const ProfileSummary& summary, const NodeCosts& costs, JsonWriter* json) {
  json->Key("nodes").BeginArray();
  for (const ProfileRow& row : summary.Rows()) {
    const auto runs = static_cast<double>(row.num_runs);
    const NodeCost* cost = costs.Find(row.label);
    json->BeginObject();
    json->Key("name").Text(row.shown.name);
    json->Key("type").Text(row.shown.type);
    const bool is_kernel = row.label.kind == ProfileLabel::Kind::kNode;
    json->Key("runs_as").Text(is_kernel                                      ? "kernel"
                              : row.label.kind == ProfileLabel::Kind::kPiece ? "piece"
                                                                             : "partition");
    json->Key("description").Text(row.label.name);
    json->Key("delegate").Text(is_kernel ? kReferenceDelegate : row.label.op);
    json->Key("function").Text(row.label.function);
    json->Key("start_seconds").Number(row.start_us / runs / kMicroseconds);
    json->Key("first_seconds").Number(row.first_us / kMicroseconds);
    json->Key("mean_seconds").Number(row.total_us / runs / kMicroseconds);
    json->Key("least_seconds").Number(row.least_us / kMicroseconds);
    json->Key("calls").Integer(row.num_calls);
    json->Key("bytes").Integer(row.memory);
    json->Key("flops").Count(cost == nullptr ? 0 : cost->flops);
    json->End();
  }
  json->End();
}

}  // namespace

std::string RobustLine(const Sample& seconds) {
  const auto us = [](double value) { return static_cast<int64_t>(std::llround(value * kMicroseconds)); };
  const Interval interval = seconds.MedianInterval();
  return absl::StrFormat(
      "median=%d (95%% sure: %d to %d) mean_without_outliers=%d p50=%d p90=%d p99=%d outliers=%d variance=%.4g",
      us(seconds.median()), us(interval.low), us(interval.high), us(seconds.mean_without_outliers()),
      us(seconds.median()), us(seconds.Percentile(0.9)), us(seconds.Percentile(0.99)), seconds.num_outliers(),
      seconds.variance() * kMicroseconds * kMicroseconds);
}

std::optional<std::string> NoiseNote(const Sample& seconds, int64_t involuntary_switches) {
  if (seconds.size() < kFewestForNoise || seconds.relative_spread() <= kNoisySpread) return std::nullopt;
  const Interval interval = seconds.MedianInterval();
  std::string note = absl::StrFormat(
      "the machine is noisy: the middle half of the runs spreads over %.0f %% of the median, which is known to %.1f %% "
      "at best",
      100 * seconds.relative_spread(), 50 * (interval.high - interval.low) / seconds.median());
  if (involuntary_switches > static_cast<int64_t>(seconds.size())) {
    absl::StrAppend(&note, "; other programs took the processor ", involuntary_switches, " times");
  }
  return absl::StrCat(note,
                      "; stop other programs, bind to a processor (--cpu_affinity), or compare interleaved "
                      "(--compare, --against)");
}

void PrintWarnings(const std::vector<std::string>& notes, const Console& console) {
  for (const std::string& note : notes) {
    console.out << console.Styled(Style::kWarning, absl::StrCat("note: ", Printable(note))) << "\n";
  }
}

void PrintBenchmarkHead(const BenchmarkModelOptions& options, const BenchmarkSubject& subject,
                        const BenchmarkResult& result, std::ostream& out) {
  std::vector<std::string> names, shapes, types;
  for (const BenchmarkInput& input : subject.inputs()) {
    names.push_back(input.name);
    shapes.push_back(Dimensions(input.tensor.shape()));
    types.push_back(DTypeName(input.tensor.dtype()));
  }
  out << "Graph: [" << Printable(options.subject.graph) << "]\n"
      << "Init ops:" << Printable(options.init_ops) << "\n"
      << "Input layers: [" << Printable(absl::StrJoin(names, ",")) << "]\n"
      << "Input shapes: [" << absl::StrJoin(shapes, ":") << "]\n"
      << "Input types: [" << absl::StrJoin(types, ",") << "]\n"
      << "Output layers: [" << Printable(absl::StrJoin(subject.outputs(), ",")) << "]\n"
      << "Target layers: [" << Printable(absl::StrJoin(subject.targets(), ",")) << "]\n"
      << "Num runs: [" << options.max_num_runs << "]\n"
      << "Inter-inference delay (seconds): [" << Seconds(options.inference_delay) << "]\n"
      << "Inter-benchmark delay (seconds): [" << Seconds(options.inter_benchmark_delay) << "]\n"
      << "Num threads: [" << result.num_threads << "]\n"
      << "Benchmark name: [" << Printable(options.benchmark_name) << "]\n"
      << "Output prefix: [" << Printable(options.output_prefix) << "]\n"
      << "Show sizes: [" << (options.show_sizes ? "true" : "false") << "]\n"
      << "Warmup runs: [" << options.warmup_runs << "]\n"
      << "Delegate: [" << Printable(result.delegate) << "] precision: [" << Printable(result.precision) << "]\n"
      << absl::StrFormat("Loaded model in %.6fs\nInitialized session in %.6fs\n", result.load_seconds,
                         result.init_seconds);
}

void PrintBenchmark(const BenchmarkModelOptions& options, const BenchmarkResult& result, const ProfileSummary* summary,
                    const NodeCosts& costs, const Console& console) {
  std::ostream& out = console.out;
  const double delay = options.inference_delay;
  if (!result.warmup.seconds.empty()) PrintPhase(options.warmup_runs, -1, delay, false, result.warmup, out);
  PrintPhase(options.max_num_runs, options.max_time, delay, false, result.plain, out);
  if (summary != nullptr) PrintPhase(options.max_num_runs, options.max_time, delay, true, result.profiled, out);
  const auto mean = [](const TimedRuns& runs) { return static_cast<int64_t>(MicrosecondStat(runs).mean()); };
  out << "Average inference timings in us: Warmup: " << mean(result.warmup) << ", no stats: " << mean(result.plain);
  if (summary != nullptr) out << ", with stats: " << mean(result.profiled);
  out << "\n";
  if (!result.plain.seconds.empty()) {
    out << "Robust timings (microseconds): " << RobustLine(Sample(result.plain.seconds)) << "\n";
  }
  if (!result.warmup.seconds.empty()) {
    out << absl::StrFormat(
        "Cold start (microseconds): load=%d init=%d first=%d\n", std::llround(result.load_seconds * kMicroseconds),
        std::llround(result.init_seconds * kMicroseconds), std::llround(result.warmup.seconds.front() * kMicroseconds));
  }
  if (result.is_tflite && !result.warmup.seconds.empty() && !result.plain.seconds.empty()) {
    // The line of LiteRT's tool, which scripts read.
    out << absl::StrFormat(
        "Inference timings in us: Init: %d, First inference: %d, Warmup (avg): %g, Inference (avg): %g\n",
        std::llround(result.init_seconds * kMicroseconds), std::llround(result.warmup.seconds.front() * kMicroseconds),
        MicrosecondStat(result.warmup).mean(), MicrosecondStat(result.plain).mean());
  }
  const auto megabytes = [&](int64_t bytes) { return static_cast<double>(bytes) / kBytesInMegabyte; };
  out << absl::StrFormat("Memory footprint delta from the start of the tool (MB): init=%.3f overall=%.3f\n",
                         megabytes(result.after_init.resident_bytes - result.before.resident_bytes),
                         megabytes(result.after.resident_bytes - result.before.resident_bytes));
  if (options.report_peak_memory_footprint) {
    out << absl::StrFormat("Overall peak memory footprint (MB): %.3f\n", megabytes(result.after.peak_resident_bytes));
  }
  if (summary != nullptr && summary->num_runs() > 0) PrintProfile(*summary, options.tables, out);
  if (options.show_sizes) PrintSizes(result.outputs, out);
  if (options.show_flops) {
    const FlopsEstimate& flops = costs.flops();
    if (!flops.status.ok()) {
      out << "FLOPs estimate: not known: " << Printable(flops.status.message()) << "\n";
    } else {
      out << "FLOPs estimate: " << HumanCount(static_cast<int64_t>(flops.total)) << "\n"
          << "FLOPs/second: " << HumanCount(static_cast<int64_t>(PerSecond(flops.total, result))) << "\n";
    }
  }
  PrintCounters(result.counters, out);
  if (result.roofline.has_value()) {
    PrintRoofline(*result.roofline, static_cast<size_t>(options.tables.time_limit), console);
  }
  if (result.baseline.has_value()) {
    const BaselineVerdict& verdict = *result.baseline;
    out << absl::StrFormat("Baseline: %.3f times as long (%.3f to %.3f): %s\n", verdict.ratio, verdict.interval.low,
                           verdict.interval.high,
                           verdict.is_regression       ? "a regression"
                           : verdict.interval.high < 1 ? "faster"
                           : verdict.interval.low > 1  ? "slower, within what is allowed"
                                                       : "not told apart");
  }
  PrintWarnings(result.notes, console);
}

void WriteSample(const Sample& seconds, JsonWriter* json) {
  const Interval interval = seconds.MedianInterval();
  json->BeginObject();
  json->Key("count").Count(seconds.size());
  json->Key("median_seconds").Number(seconds.median());
  json->Key("median_low_seconds").Number(interval.low);
  json->Key("median_high_seconds").Number(interval.high);
  json->Key("mean_seconds").Number(seconds.mean());
  json->Key("mean_without_outliers_seconds").Number(seconds.mean_without_outliers());
  json->Key("min_seconds").Number(seconds.min());
  json->Key("max_seconds").Number(seconds.max());
  json->Key("p90_seconds").Number(seconds.Percentile(0.9));
  json->Key("p99_seconds").Number(seconds.Percentile(0.99));
  json->Key("standard_deviation_seconds").Number(seconds.standard_deviation());
  json->Key("outliers").Count(seconds.num_outliers());
  json->End();
}

void WriteBenchmark(const BenchmarkSubject& subject, const std::string& model, const BenchmarkResult& result,
                    const ProfileSummary* summary, const NodeCosts& costs, JsonWriter* json) {
  json->Key("model").Text(model);
  json->Key("inputs").BeginArray();
  for (const BenchmarkInput& input : subject.inputs()) {
    json->BeginObject();
    json->Key("name").Text(input.name);
    json->Key("type").Text(DTypeName(input.tensor.dtype()));
    json->Key("shape").Dimensions(input.tensor.shape());
    json->End();
  }
  json->End();
  json->Key("outputs").Texts(subject.outputs());
  json->Key("delegate").Text(result.delegate);
  json->Key("precision").Text(result.precision);
  json->Key("threads").Integer(result.num_threads);
  json->Key("interrupted").Bool(result.was_interrupted);
  json->Key("load_seconds").Number(result.load_seconds);
  json->Key("init_seconds").Number(result.init_seconds);
  json->Key("first_run_seconds").Number(result.warmup.seconds.empty() ? 0 : result.warmup.seconds.front());
  json->Key("warmup");
  WriteSample(Sample(result.warmup.seconds), json);
  json->Key("runs");
  WriteSample(Sample(result.plain.seconds), json);
  json->Key("arena_bytes").Integer(result.plan.arena_bytes);
  json->Key("peak_resident_bytes").Integer(result.after.peak_resident_bytes);
  json->Key("flops").Count(costs.flops().total);
  json->Key("notes").Texts(result.notes);
  if (!result.counters.empty()) {
    json->Key("hardware_counters").BeginObject();
    for (const CounterValue& counter : result.counters) json->Key(counter.name).Number(counter.count);
    json->End();
  }
  if (result.roofline.has_value()) {
    json->Key("roofline");
    WriteRoofline(*result.roofline, json);
  }
  if (result.baseline.has_value()) {
    json->Key("baseline").BeginObject();
    json->Key("ratio").Number(result.baseline->ratio);
    json->Key("ratio_low").Number(result.baseline->interval.low);
    json->Key("ratio_high").Number(result.baseline->interval.high);
    json->Key("is_regression").Bool(result.baseline->is_regression);
    json->End();
  }
  if (summary == nullptr) return;
  json->Key("profiled");
  WriteSample(Sample(result.profiled.seconds), json);
  WriteTypes(*summary, json);
  WriteNodes(*summary, costs, json);
}

}  // namespace permafrost
