// Measures runs with a monotonic clock.
#include "tools/measuring/timed_runs.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "graph/base/status.h"
#include "tools/command_line/interruption.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// Maximum delay of an interruption by a sleep.
constexpr double kLongestSleepSeconds = 0.05;

}  // namespace

double TimedRuns::total() const {
  double sum = 0;
  for (const double value : seconds) sum += value;
  return sum;
}

void Pause(double seconds) {
  while (seconds > 0 && !Interruption::IsRequested()) {
    const double part = std::min(seconds, kLongestSleepSeconds);
    std::this_thread::sleep_for(std::chrono::duration<double>(part));
    seconds -= part;
  }
}

absl::Status RunTimed(const RunLimits& limits, absl::FunctionRef<absl::Status()> run,
                      absl::FunctionRef<void(const TimedRuns&)> after_each, TimedRuns* runs) {
  const bool counts = limits.max_runs > 0, times = limits.max_seconds > 0;
  if (!counts && !times) return absl::OkStatus();
  double total = 0;
  while (true) {
    if (Interruption::IsRequested()) {
      runs->was_interrupted = true;
      return absl::OkStatus();
    }
    const Clock::time_point start = Clock::now();
    absl::Status status = run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (absl::IsCancelled(status) && Interruption::IsRequested()) continue;  // The check above ends the loop.
    if (!status.ok()) return status;
    runs->seconds.push_back(seconds);
    total += seconds;
    after_each(*runs);
    if (counts && static_cast<int64_t>(runs->seconds.size()) >= limits.max_runs && total >= limits.min_seconds) break;
    if (times && total >= limits.max_seconds) break;
    Pause(limits.delay_seconds);
  }
  return absl::OkStatus();
}

}  // namespace permafrost
