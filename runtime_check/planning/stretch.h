// Which of a list of tasks run at the same time, and running them so.
//
// A list of tasks, each behind those that it waits for, is run in order, with all threads for each; but for stretches:
// neighbours in the list that are faster when several run at once, on one thread each. Nothing else runs meanwhile.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace permafrost {

// A step of a plan, or a piece of a partition. Times are estimates, in nanoseconds.
struct Task {
  std::vector<int> after;     // Earlier tasks that must be done before it; one may be named twice.
  double alone_ns = 0;        // What it takes with all threads.
  double beside_ns = 0;       // What it takes on one thread.
  bool may_be_beside = true;  // False: while it runs, nothing else does.
};

// Tasks [begin, end) of the list, at least two. All before them are done when they start, and all behind them wait.
struct Stretch {
  int begin = 0;
  int end = 0;
};

// The stretches, in order, with which the whole list is done soonest when each runs on `num_lanes` threads. None where
// nothing is gained: what is gained must be more than what threads cost that meet. O(n * lanes) for each of the up to
// 1024 lengths that are tried, fewer for long lists.
std::vector<Stretch> FindStretches(absl::Span<const Task> tasks, int num_lanes);

// What a list takes in order, but for these stretches, in nanoseconds.
double EstimateNs(absl::Span<const Task> tasks, absl::Span<const Stretch> stretches, int num_lanes);

// Runs a stretch, any number of times. A run allocates nothing.
class StretchRunner {
 public:
  // Inside of the stretch tasks wait for Task::after alone.
  StretchRunner(absl::Span<const Task> tasks, Stretch stretch);
  StretchRunner(const StretchRunner&) = delete;
  StretchRunner& operator=(const StretchRunner&) = delete;

  // Before each run. REQUIRES: no Work is under way.
  void Begin();
  // What each of the threads does, any number of them, one after the other at worst: takes tasks that wait for nothing
  // any more, those with the most behind them first, and returns when none is left. `run(task)` gets a number in the
  // list. When a task fails, tasks behind it in the list are not started any more.
  void Work(absl::FunctionRef<absl::Status(int task)> run);
  // When all have returned: the error that the list would have ended with if it had been run in order, or OK.
  const absl::Status& status() const { return status_; }

 private:
  // REQUIRES: the lock, for all that follow.
  bool IsLess(int a, int b) const;
  void Offer(int index);
  bool Take(int* index);
  void Finish(int index, absl::Status status);

  const int first_;
  std::vector<int> num_before_;            // By task of the stretch: how many it waits for.
  std::vector<std::vector<int>> readers_;  // Who waits for it.
  std::vector<double> way_ns_;             // From its start to the end of the longest way behind it.

  std::mutex mutex_;
  std::vector<int> pending_;  // By task: how many it still waits for.
  std::vector<int> ready_;    // A heap: the longest way on top.
  std::vector<bool> is_done_;
  int limit_ = 0;  // No task from here on is started.
  absl::Status status_;
  // What threads that wait look at.
  std::atomic<int> num_ready_{0};
  std::atomic<int> num_left_{0};  // Tasks before the limit that are not done.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_
