// Measures the known delegates briefly.
#include "tools/benchmark/faster_delegate.h"

#include <memory>
#include <utility>

#include "graph/base/status.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/profiling/run_statistics.h"
#include "runtime_check/session.h"
#include "tools/command_line/interruption.h"
#include "tools/measuring/timed_runs.h"
#include "tools/model/run_options.h"

namespace permafrost {
namespace {

// The user did not ask for this measurement, so it must be short; a median of 3 runs tells factors, not percents.
constexpr double kSecondsEach = 0.3;
constexpr int64_t kMostRuns = 30;
// Smaller differences are within the noise of so few runs.
constexpr double kClearlyLess = 0.8;
// In shorter runs, the overhead of the call dominates.
constexpr double kLeastSeconds = 20e-6;

absl::StatusOr<double> MedianOf(const RunFlags& run, const BenchmarkSubject& subject, FileSystem& files) {
  PF_ASSIGN_OR_RETURN(RunOptions options, MakeRunOptions(run, files));
  options.chosen.loop_limits.is_cancelled = &Interruption::IsRequested;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, subject.NewSession(std::move(options.chosen)));
  const auto once = [&] { return session->Run(subject.feeds()).status(); };
  PF_RETURN_IF_ERROR(once());
  TimedRuns runs;
  PF_RETURN_IF_ERROR(RunTimed(
      {kMostRuns, 0, kSecondsEach, -1}, once, [](const TimedRuns&) {}, &runs));
  if (runs.seconds.empty()) return absl::CancelledError("interrupted");
  return Sample(runs.seconds).median();
}

}  // namespace

std::optional<FasterDelegate> FindFasterDelegate(const RunFlags& run, const BenchmarkSubject& subject, double seconds,
                                                 FileSystem& files) {
  std::optional<FasterDelegate> fastest;
  if (seconds < kLeastSeconds) return fastest;
  double least = seconds * kClearlyLess;
  for (const DelegateInfo& info : KnownDelegates()) {
    if (info.is_reference || info.needs_device || Interruption::IsRequested()) continue;
    RunFlags candidate = run;
    candidate.delegate = info.name;
    const absl::StatusOr<double> median = MedianOf(candidate, subject, files);
    if (!median.ok() || *median >= least) continue;
    least = *median;
    fastest = FasterDelegate{info.name, *median};
  }
  return fastest;
}

}  // namespace permafrost
