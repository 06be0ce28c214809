// A fixed team of threads that share a loop.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace permafrost {

// The calling thread is one of the team, so a pool of one starts no thread. One loop at a time: not for nested or
// concurrent use.
class ThreadPool {
 public:
  static constexpr int kMostThreads = 1024;

  // `num_threads` below 1 counts as 1, and above kMostThreads as that. Where the system starts fewer, those are the
  // team.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(begin, end) on pieces that cover [0, count) exactly once, and returns when all are done. The pieces
  // depend on count, grain and the number of threads alone, so results are reproducible at a fixed thread count.
  // `grain` is the smallest piece that is worth handing to another thread (1 or more).
  void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_
