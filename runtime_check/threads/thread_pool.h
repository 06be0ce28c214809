// A thread pool: a fixed team of threads that share a loop.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace permafrost {

// Divides loops among threads. The calling thread is part of the team, so a pool of one starts no thread. Runs one loop
// at a time: not for nested or concurrent use.
class ThreadPool {
 public:
  static constexpr int kMostThreads = 1024;

  // `num_threads` is limited to 1 to kMostThreads. If the system starts fewer threads, the team has those.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(begin, end) on pieces that cover [0, count) exactly once, and returns when all are done. The pieces
  // depend only on count, grain and the number of threads, so results are reproducible at a fixed thread count. `grain`
  // is the smallest piece that is worth a thread of its own (1 or more).
  void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_POOL_H_
