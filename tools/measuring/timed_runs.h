// The loop that measures: runs something again and again, with a clock right before and right after it.
#ifndef PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_
#define PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace permafrost {

// A phase ends after `max_runs` runs that took at least `min_seconds` together, or once they have taken `max_seconds`,
// whichever comes first. Neither counts below (0 for runs) or at 0; pauses and what happens between runs never count.
struct RunLimits {
  int64_t max_runs = 0;
  double min_seconds = 0;
  double max_seconds = 0;
  double delay_seconds = 0;  // Sleep between runs; none below 0.
};

struct TimedRuns {
  std::vector<double> seconds;  // Of each run, by the steady clock.
  bool was_interrupted = false;

  double total() const;
};

// Does nothing where limits.max_runs and limits.max_seconds are both without meaning. `after_each`, which is not timed,
// sees what was measured so far. Stops at the first error, which it returns, and once Interruption::IsRequested; *runs
// has what was measured until then.
absl::Status RunTimed(const RunLimits& limits, absl::FunctionRef<absl::Status()> run,
                      absl::FunctionRef<void(const TimedRuns&)> after_each, TimedRuns* runs);

// Sleeps so long, or until Interruption::IsRequested; nothing below 0.
void Pause(double seconds);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_TIMED_RUNS_H_
