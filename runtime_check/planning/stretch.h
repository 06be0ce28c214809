// Chooses which tasks of a list run at the same time, and runs them.
//
// The tasks are in topological order and run in order, each on all threads, except in stretches. A stretch is a range
// of adjacent tasks that are faster when several run at the same time, on one thread each. Nothing else runs during a
// stretch.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace permafrost {

// A task: a step of a plan, or a piece of a partition. Times are estimates in nanoseconds.
struct Task {
  std::vector<int> after;     // Earlier tasks that must finish first; duplicates are allowed.
  double alone_ns = 0;        // Time on all threads.
  double beside_ns = 0;       // Time on one thread.
  bool may_be_beside = true;  // False: no other task may run at the same time.
};

// Tasks [begin, end) of the list, at least two. All earlier tasks are done before a stretch starts, and all later ones
// wait for its end.
struct Stretch {
  int begin = 0;
  int end = 0;
};

// Returns the stretches, in order, that minimise the time of the whole list when each runs on `num_lanes` threads.
// Empty if the gain does not exceed the cost of synchronising the threads. O(n * lanes) for each of the up to 1024
// lengths that are tried, fewer for long lists.
std::vector<Stretch> FindStretches(absl::Span<const Task> tasks, int num_lanes);

// Returns the estimated time of a list that runs in order except for these stretches, in nanoseconds.
double EstimateNs(absl::Span<const Task> tasks, absl::Span<const Stretch> stretches, int num_lanes);

// Runs a stretch, any number of times. A run allocates nothing. Call Begin, then Work on each thread, then status.
class StretchRunner {
 public:
  // Within the stretch, tasks wait only for the tasks in Task::after.
  StretchRunner(absl::Span<const Task> tasks, Stretch stretch);
  StretchRunner(const StretchRunner&) = delete;
  StretchRunner& operator=(const StretchRunner&) = delete;

  // Resets the state before each run. REQUIRES: no call of Work is in progress.
  void Begin();
  // Runs tasks on the calling thread. Any number of threads may call it at the same time, or one after the other. Takes
  // tasks that are ready, those with the longest remaining path first, and returns when none is left. `run(task)`
  // receives the index in the list. After a task fails, later tasks of the list are not started.
  void Work(absl::FunctionRef<absl::Status(int task)> run);
  // Returns the error that a run of the list in order would have returned, or OK. Valid after all calls of Work have
  // returned.
  const absl::Status& status() const { return status_; }

 private:
  // REQUIRES: `mutex_` is held, for all functions below.
  bool IsLess(int a, int b) const;
  void Offer(int index);
  bool Take(int* index);
  void Finish(int index, absl::Status status);

  const int first_;
  std::vector<int> num_before_;            // By task of the stretch: the number of tasks that it waits for.
  std::vector<std::vector<int>> readers_;  // By task: the tasks that wait for it.
  std::vector<double> way_ns_;             // By task: the length of the longest path from its start to the end.

  std::mutex mutex_;
  std::condition_variable news_;  // Signals that a task is ready, or that all are done.
  int num_waiting_ = 0;           // Threads that wait for news_.
  std::vector<int> pending_;      // By task: the number of unfinished tasks that it waits for.
  std::vector<int> ready_;        // A heap, with the longest path on top.
  std::vector<bool> is_done_;
  int limit_ = 0;  // Tasks from this index on are not started.
  absl::Status status_;
  // Polled by waiting threads.
  std::atomic<int> num_ready_{0};
  std::atomic<int> num_left_{0};  // Tasks before the limit that are not done.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_STRETCH_H_
