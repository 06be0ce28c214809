// Measures with and without background load.
#include "tools/benchmark/load_comparison.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "tools/benchmark/benchmark_report.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/background_load.h"

namespace permafrost {
namespace {

// Uncounted warm-up, so that caches and clock rates are stable.
constexpr double kWarmupSeconds = 0.05;

absl::StatusOr<Sample> Measure(const BenchmarkSubject& subject, Session* session, const RunLimits& limits) {
  const auto run = [&] { return session->Run(subject.feeds()).status(); };
  TimedRuns warmup, runs;
  PF_RETURN_IF_ERROR(RunTimed(
      {0, 0, kWarmupSeconds, -1}, run, [](const TimedRuns&) {}, &warmup));
  PF_RETURN_IF_ERROR(RunTimed(
      limits, run, [](const TimedRuns&) {}, &runs));
  return Sample(std::move(runs.seconds));
}

std::string Ratio(double a, double b) { return b > 0 ? absl::StrFormat("%.2f", a / b) : ""; }

}  // namespace

std::vector<int> ThreadCounts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

absl::StatusOr<LoadComparison> CompareUnderLoad(const BenchmarkSubject& subject, const SessionOptions& options,
                                                const std::vector<int>& threads, int load_threads,
                                                const RunLimits& limits, const Console& console) {
  LoadComparison comparison;
  comparison.load_threads = load_threads;
  for (const int count : threads) {
    if (Interruption::IsRequested()) break;
    SessionOptions own = options;
    own.num_threads = count;
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, subject.NewSession(std::move(own)));
    LoadedTimes& times = comparison.times.emplace_back();
    times.num_threads = count;
    console.Progress(absl::StrCat("threads: ", count, ", alone"));
    PF_ASSIGN_OR_RETURN(times.alone, Measure(subject, session.get(), limits));
    console.Progress(absl::StrCat("threads: ", count, ", disturbed"));
    const BackgroundLoad load(load_threads);
    PF_ASSIGN_OR_RETURN(times.disturbed, Measure(subject, session.get(), limits));
  }
  console.Progress("");
  comparison.was_interrupted = Interruption::IsRequested();
  return comparison;
}

void PrintLoadComparison(const LoadComparison& comparison, const Console& console) {
  console.out << "alone, and while " << comparison.load_threads
              << (comparison.load_threads == 1 ? " thread does" : " threads do") << " other work\n";
  Table table({{"threads", true},
               {"alone median", true},
               {"p99", true},
               {"p99/median", true},
               {"disturbed median", true},
               {"p99", true},
               {"p99/median", true},
               {"slower", true}});
  for (const LoadedTimes& times : comparison.times) {
    const double alone_tail = times.alone.Percentile(0.99), disturbed_tail = times.disturbed.Percentile(0.99);
    table.AddRow({absl::StrCat(times.num_threads), FormatSeconds(times.alone.median()), FormatSeconds(alone_tail),
                  Ratio(alone_tail, times.alone.median()), FormatSeconds(times.disturbed.median()),
                  FormatSeconds(disturbed_tail), Ratio(disturbed_tail, times.disturbed.median()),
                  Ratio(times.disturbed.median(), times.alone.median())});
  }
  table.Print(console, "  ");
}

void WriteLoadComparison(const LoadComparison& comparison, JsonWriter* json) {
  json->BeginObject();
  json->Key("load_threads").Integer(comparison.load_threads);
  json->Key("interrupted").Bool(comparison.was_interrupted);
  json->Key("threads").BeginArray();
  for (const LoadedTimes& times : comparison.times) {
    json->BeginObject();
    json->Key("threads").Integer(times.num_threads);
    json->Key("alone");
    WriteSample(times.alone, json);
    json->Key("disturbed");
    WriteSample(times.disturbed, json);
    json->End();
  }
  json->End();
  json->End();
}

}  // namespace permafrost
