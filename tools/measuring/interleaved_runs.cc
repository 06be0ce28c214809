// Shuffles turns, measures them and drops contestants that cannot win.
#include "tools/measuring/interleaved_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "graph/base/status.h"
#include "tools/command_line/interruption.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// The least number of rounds for 95 % confidence (Sample::MedianInterval).
constexpr int kFewestRounds = 6;
constexpr int kMostRunsOfTurn = 1000;
// The part of max_seconds before any decision.
constexpr double kUndecidedPart = 0.25;
// A contestant found too slow rests for this part of max_seconds. It then has this many rounds to show that the machine
// was disturbed.
constexpr double kRestingPart = 0.125;
constexpr size_t kSecondChance = 3;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

absl::Status TakeTurn(const Contestant& contestant, const ContestLimits& limits, std::vector<double>* seconds) {
  const Clock::time_point warmup = Clock::now();
  do {
    PF_RETURN_IF_ERROR(contestant.run());
  } while (Since(warmup) < limits.warmup_seconds);
  double total = 0;
  for (int i = 0; i < kMostRunsOfTurn && total < limits.turn_seconds; ++i) {
    const Clock::time_point start = Clock::now();
    absl::Status status = contestant.run();
    seconds->push_back(Since(start));
    PF_RETURN_IF_ERROR(status);
    total += seconds->back();
  }
  return absl::OkStatus();
}

class Contest {
 public:
  Contest(absl::Span<const Contestant> contestants, const ContestLimits& limits)
      : contestants_(contestants),
        limits_(limits),
        results_(contestants.size()),
        standings_(contestants.size()),
        random_(limits.seed) {}

  void Run(absl::FunctionRef<void(int round)> progress) {
    const Clock::time_point start = Clock::now();
    for (int round = 0; round < limits_.max_rounds && !Interruption::IsRequested(); ++round) {
      progress(round);
      RunRound();
      if (round + 1 < kFewestRounds) continue;
      const double seconds = seconds_ = Since(start);
      const bool may_decide = seconds >= kUndecidedPart * limits_.max_seconds;
      DropSlowerThan(may_decide ? limits_.hopeless_ratio : std::max(limits_.hopeless_ratio, limits_.lost_ratio));
      if (round + 1 >= limits_.min_rounds && may_decide && IsDecided()) return;
      if (round + 1 >= limits_.min_rounds / 2 && seconds >= limits_.max_seconds) return;
    }
  }

  std::vector<ContestResult> Release() { return std::move(results_); }

 private:
  // State of a contestant besides its times.
  struct Standing {
    bool was_found_slow = false;
    double rests_until = 0;  // Seconds since the start.
    size_t judged_from = 0;  // The first round that counts against it; earlier ones may have been disturbed.
  };

  bool IsIn(size_t i) const { return results_[i].status.ok() && !results_[i].was_dropped; }
  bool Rests(size_t i) const { return standings_[i].rests_until > seconds_; }

  void RunRound() {
    std::vector<size_t> order(contestants_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t i : order) {
      ContestResult& result = results_[i];
      result.rounds.push_back(std::numeric_limits<double>::quiet_NaN());
      if (!IsIn(i) || Rests(i) || Interruption::IsRequested()) continue;
      std::vector<double> seconds;
      const absl::Status status = TakeTurn(contestants_[i], limits_, &seconds);
      // A run that an interruption cancels is no failure of the contestant: its earlier rounds count.
      if (absl::IsCancelled(status) && Interruption::IsRequested()) continue;
      result.status = status;
      if (!result.status.ok()) continue;
      result.rounds.back() = Sample(seconds).median();
      result.seconds.insert(result.seconds.end(), seconds.begin(), seconds.end());
    }
  }

  int Best() const {
    return FastestOf(results_, [&](int i) { return IsIn(static_cast<size_t>(i)); });
  }

  void DropSlowerThan(double most) {
    const int best = Best();
    if (best < 0) return;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!IsIn(i) || static_cast<int>(i) == best) continue;
      Standing& standing = standings_[i];
      if (Rests(i)) continue;
      const std::vector<double>& rounds = results_[i].rounds;
      const std::vector<double>& of_best = results_[static_cast<size_t>(best)].rounds;
      const size_t from = std::min({standing.judged_from, rounds.size(), of_best.size()});
      const Sample ratio =
          PairedRatios(absl::MakeConstSpan(rounds).subspan(from), absl::MakeConstSpan(of_best).subspan(from));
      if (standing.was_found_slow) {
        if (ratio.size() < kSecondChance) continue;
        standing.was_found_slow = false;
        results_[i].was_dropped = ratio.min() > most;
      } else if (ratio.size() >= kFewestRounds && ratio.MedianInterval().low > most) {
        standing.was_found_slow = true;
        standing.rests_until = seconds_ + kRestingPart * limits_.max_seconds;
        standing.judged_from = rounds.size();
      }
    }
  }

  bool IsDecided() const {
    const int best = Best();
    if (best < 0) return true;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!IsIn(i) || static_cast<int>(i) == best) continue;
      if (standings_[i].was_found_slow) return false;
      const Interval ratio = RatioOf(results_[i], results_[static_cast<size_t>(best)]).MedianInterval();
      const bool is_equal = ratio.high < limits_.equal_ratio && ratio.low > 1 / limits_.equal_ratio;
      if (ratio.low <= 1 && !is_equal) return false;
    }
    return true;
  }

  absl::Span<const Contestant> contestants_;
  const ContestLimits& limits_;
  std::vector<ContestResult> results_;
  std::vector<Standing> standings_;
  double seconds_ = 0;  // From the start to the end of the last round.
  std::mt19937_64 random_;
};

}  // namespace

std::vector<ContestResult> RunInterleaved(absl::Span<const Contestant> contestants, const ContestLimits& limits,
                                          absl::FunctionRef<void(int round)> progress) {
  Contest contest(contestants, limits);
  contest.Run(progress);
  return contest.Release();
}

Sample RatioOf(const ContestResult& a, const ContestResult& b) { return PairedRatios(a.rounds, b.rounds); }

int FastestOf(absl::Span<const ContestResult> results, absl::FunctionRef<bool(int)> may_win) {
  int best = -1;
  double least = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const Sample rounds(results[i].rounds);
    if (rounds.empty() || !results[i].status.ok() || !may_win(static_cast<int>(i))) continue;
    if (best >= 0 && rounds.median() >= least) continue;
    best = static_cast<int>(i);
    least = rounds.median();
  }
  return best;
}

}  // namespace permafrost
