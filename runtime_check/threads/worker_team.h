// A fixed team of threads that share the items of a loop.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace permafrost {

// The calling thread is part of the team, so a team of one starts no thread. Runs one loop at a time: not for nested or
// concurrent use. Threads that wait spin for a bounded time (SpinWait), and then sleep. In a child of a fork, the first
// loop starts the threads anew.
class WorkerTeam {
 public:
  static constexpr int kMostThreads = 1024;

  // The items that one thread takes in a loop.
  class Items {
   public:
    // The number of the thread in its team; 0 is the caller.
    virtual int thread() const = 0;
    // Takes the next item. Returns false if none is left.
    virtual bool Next(int64_t* item) = 0;
    // Takes some of the remaining items, [*begin, *end): for short items. Returns false if none is left.
    virtual bool NextRange(int64_t* begin, int64_t* end) = 0;

   protected:
    ~Items() = default;
  };

  // `num_threads` is limited to 1 to kMostThreads. If the system starts fewer threads, the team has those.
  explicit WorkerTeam(int num_threads);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  // Changes only in a child of a fork.
  int num_threads() const;

  // Calls body on each thread that arrives before all items of [0, count) are taken, and returns when all items are
  // done. `body` takes items until none is left. A thread takes items of its own, equal part of the range in ascending
  // order, and then those that other threads have left, so that a thread that waits for a processor does not hold up
  // the others. Items may wait for each other if there are at most num_threads().
  void Run(int64_t count, absl::FunctionRef<void(Items* items)> body);

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_
