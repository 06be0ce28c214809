// Measures the overhead of measuring: measuring_error MODEL THREADS DELEGATE [PRECISION] prints the error of the timed
// loop relative to a clock around it, the cost of a profiler while off and on, and the share of a run that the rows of
// a profile add up to.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "io/file_system.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/profiling/profile_summary.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/session.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/measuring/interleaved_runs.h"
#include "tools/measuring/timed_runs.h"

namespace permafrost {
namespace {

constexpr int kRuns = 200;
constexpr int kRounds = 1000;

// Two sessions, one of them with a profiler, in turn.
absl::Status PrintOverhead(const char* what, const BenchmarkSubject& subject, const SessionOptions& plain,
                           bool is_recording) {
  Profiler profiler;
  SessionOptions profiled = plain;
  profiled.profiler = &profiler;
  profiler.set_recording(is_recording);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> without, subject.NewSession(plain));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> with, subject.NewSession(profiled));
  const std::vector<Contestant> contestants = {{"without", [&] { return without->Run(subject.feeds()).status(); }},
                                               {"with", [&] {
                                                  profiler.Clear();
                                                  return with->Run(subject.feeds()).status();
                                                }}};
  ContestLimits limits;
  limits.min_rounds = limits.max_rounds = kRounds;
  // Single runs in turn: on a shared machine, most pairs of runs are disturbed equally or not at all.
  limits.warmup_seconds = 0;
  limits.turn_seconds = 1e-9;
  limits.hopeless_ratio = 1e9;
  const std::vector<ContestResult> results = RunInterleaved(contestants, limits, [](int) {});
  const Sample ratio = RatioOf(results[1], results[0]);
  const Interval interval = ratio.MedianInterval();
  std::printf("profiler %s: %+.2f %% (95 %% sure: %+.2f %% to %+.2f %%)", what, 100 * (ratio.median() - 1),
              100 * (interval.low - 1), 100 * (interval.high - 1));
  if (is_recording) {
    PF_RETURN_IF_ERROR(with->Run(subject.feeds()).status());
    const auto events = static_cast<double>(profiler.runs().back().events.size());
    const double seconds = Sample(results[0].seconds).median();
    std::printf(", about %.0f ns for each of %.0f events", 1e9 * (ratio.median() - 1) * seconds / events, events);
  }
  std::printf("\n");
  return absl::OkStatus();
}

// The time by a clock around the runs, and the sum of the rows of their profiles.
absl::Status PrintSums(const BenchmarkSubject& subject, const SessionOptions& plain) {
  Profiler profiler;
  SessionOptions profiled = plain;
  profiled.profiler = &profiler;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, subject.NewSession(profiled));
  PF_RETURN_IF_ERROR(session->Run(subject.feeds()).status());
  profiler.set_recording(true);
  ProfileSummary summary;
  double outside = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    PF_RETURN_IF_ERROR(session->Run(subject.feeds()).status());
    outside += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    summary.Add(profiler);
    profiler.Clear();
  }
  double inside = 0;
  for (const ProfileRow& row : summary.Rows()) inside += row.total_us * 1e-6;
  std::printf("%d rows of a profile add up to %.2f %% of the runs\n", static_cast<int>(summary.Rows().size()),
              100 * inside / outside);
  return absl::OkStatus();
}

absl::Status Measure(const std::string& model, int threads, const std::string& delegate, const std::string& precision) {
  SubjectFlags flags;
  flags.graph = model;
  Console console{std::cout, std::cerr};
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<BenchmarkSubject> subject,
                      BenchmarkSubject::Open(flags, RealFileSystem(), console));
  SessionOptions options;
  options.num_threads = threads;
  DelegateOptions delegate_options;
  delegate_options.precision = precision;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(delegate, delegate_options));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, subject->NewSession(options));
  PF_RETURN_IF_ERROR(session->Run(subject->feeds()).status());
  TimedRuns runs;
  const auto start = std::chrono::steady_clock::now();
  PF_RETURN_IF_ERROR(RunTimed(
      {kRuns, 0, 0, -1}, [&] { return session->Run(subject->feeds()).status(); }, [](const TimedRuns&) {}, &runs));
  const double outside = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%d runs: %.6f s by the tool, %.6f s by a clock around the loop: %.4f %% are lost\n", kRuns, runs.total(),
              outside, 100 * (outside - runs.total()) / outside);
  PF_RETURN_IF_ERROR(PrintOverhead("off", *subject, options, false));
  PF_RETURN_IF_ERROR(PrintOverhead("on", *subject, options, true));
  return PrintSums(*subject, options);
}

}  // namespace
}  // namespace permafrost

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: measuring_error MODEL THREADS DELEGATE [PRECISION]\n");
    return 2;
  }
  const absl::Status status = permafrost::Measure(argv[1], std::atoi(argv[2]), argv[3], argc > 4 ? argv[4] : "f32");
  if (status.ok()) return 0;
  std::fprintf(stderr, "measuring_error: %s\n", std::string(status.message()).c_str());
  return 1;
}
