// Measures several contestants in rounds. Each contestant runs once per round, so that a temporary slowdown of the
// machine affects all of them equally.
#ifndef PERMAFROST_TOOLS_MEASURING_INTERLEAVED_RUNS_H_
#define PERMAFROST_TOOLS_MEASURING_INTERLEAVED_RUNS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

struct Contestant {
  std::string name;
  std::function<absl::Status()> run;
};

// Limits of a contest, and the ratios at which contestants are dropped.
struct ContestLimits {
  int min_rounds = 12;
  int max_rounds = 400;
  // Maximum time of all contestants together; the first min_rounds / 2 rounds always run. In the first quarter nothing
  // is decided and only contestants beyond lost_ratio are dropped: a disturbance of the machine, above all of one
  // processor, may last a second or two.
  double max_seconds = 30;
  // Approximate total time of the counted runs of a turn, and of the uncounted runs before them. The uncounted runs, at
  // least one, warm caches and let the threads of the previous contestant go to sleep.
  double turn_seconds = 0.02;
  double warmup_seconds = 0.005;
  // A contestant significantly slower than the best by more than this factor is dropped, which leaves the time to close
  // ones. One disturbance does not drop a contestant: it first rests for an eighth of max_seconds, and then three
  // rounds must confirm the result.
  double hopeless_ratio = 1.25;
  // A contestant significantly slower by more than this factor rests and is dropped even in the first quarter of
  // max_seconds.
  double lost_ratio = 4;
  // Contestants significantly within this factor of the best need not be separated from it.
  double equal_ratio = 1.01;
  uint64_t seed = 1;  // Seeds the order of turns, which differs in each round.
};

// The measurements of one contestant.
struct ContestResult {
  absl::Status status;          // An error ends the runs of this contestant.
  std::vector<double> rounds;   // Median seconds per run of each turn; NaN for a round without this contestant.
  std::vector<double> seconds;  // Seconds of every counted run.
  bool was_dropped = false;     // Dropped because of hopeless_ratio or lost_ratio.
};

// Runs the rounds. Ends when one contestant is significantly the fastest, or when those not significantly slower are
// significantly equal; otherwise at the limits or when Interruption::IsRequested. Calls `progress` with the round.
std::vector<ContestResult> RunInterleaved(absl::Span<const Contestant> contestants, const ContestLimits& limits,
                                          absl::FunctionRef<void(int round)> progress);

// Returns the time of `a` divided by that of `b`, over the rounds in which both ran.
Sample RatioOf(const ContestResult& a, const ContestResult& b);

// Returns the index with the least median for which `may_win` holds, or -1 if none ran.
int FastestOf(absl::Span<const ContestResult> results, absl::FunctionRef<bool(int)> may_win);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_INTERLEAVED_RUNS_H_
