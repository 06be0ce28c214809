// Measures several things against each other: in rounds, in each of which everyone has a turn, so that what slows the
// machine for a while slows all.
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

struct ContestLimits {
  int min_rounds = 12;
  int max_rounds = 400;
  // Of all together; the first min_rounds / 2 rounds are run in any case. Before a quarter of it nothing is decided and
  // only the lost leave: what disturbs a machine, one of its processors above all, may go on for a second or two.
  double max_seconds = 30;
  // Runs of a turn that count take about so long together; those before, which warm caches up and let the threads of
  // the one before go to sleep, too, and at least one.
  double turn_seconds = 0.02;
  double warmup_seconds = 0.005;
  // Who is surely slower than the best by more than this leaves, so that the time goes to those who are close. Nobody
  // leaves for one bad moment: first there is a rest of an eighth of max_seconds, and then three rounds must confirm
  // it.
  double hopeless_ratio = 1.25;
  // Who is surely slower by more than this rests, and leaves, before a quarter of max_seconds is over, too.
  double lost_ratio = 4;
  // Who is surely within this of the best need not be told from it.
  double equal_ratio = 1.01;
  uint64_t seed = 1;  // Of the order of turns, which is another in each round.
};

struct ContestResult {
  absl::Status status;          // An error ends the part of this one.
  std::vector<double> rounds;   // Seconds of a run, the median of a turn; NaN for a round without it.
  std::vector<double> seconds;  // Of every run that counts.
  bool was_dropped = false;     // As hopeless.
};

// Ends when one is surely the fastest, or those that are not surely slower are surely equal; else by the limits, or
// with Interruption::IsRequested. `progress` is told the round.
std::vector<ContestResult> RunInterleaved(absl::Span<const Contestant> contestants, const ContestLimits& limits,
                                          absl::FunctionRef<void(int round)> progress);

// How many times longer `a` takes than `b`: over the rounds in which both ran.
Sample RatioOf(const ContestResult& a, const ContestResult& b);

// The one with the least median, or -1 when none ran; `may_win` leaves some out.
int FastestOf(absl::Span<const ContestResult> results, absl::FunctionRef<bool(int)> may_win);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_INTERLEAVED_RUNS_H_
