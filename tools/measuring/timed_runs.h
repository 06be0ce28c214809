// The measurement loop: runs a function repeatedly and times each run.
#ifndef PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_
#define PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace permafrost {

// Limits of a phase. It ends after `max_runs` runs that took at least `min_seconds` together, or once they have taken
// `max_seconds`, whichever comes first. A limit of 0 or less is ignored; pauses and work between runs never count.
struct RunLimits {
  int64_t max_runs = 0;
  double min_seconds = 0;
  double max_seconds = 0;
  double delay_seconds = 0;  // Sleep between runs; none if negative.
};

struct TimedRuns {
  std::vector<double> seconds;  // Seconds of each run, by the steady clock.
  bool was_interrupted = false;

  double total() const;
};

// Runs and times `run`. Does nothing if neither limits.max_runs nor limits.max_seconds is set. Calls `after_each`,
// untimed, with the results so far. Stops at the first error, which it returns, and once Interruption::IsRequested;
// *runs holds the results measured until then.
absl::Status RunTimed(const RunLimits& limits, absl::FunctionRef<absl::Status()> run,
                      absl::FunctionRef<void(const TimedRuns&)> after_each, TimedRuns* runs);

// Sleeps for `seconds`, or until Interruption::IsRequested; returns at once if negative.
void Pause(double seconds);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_
