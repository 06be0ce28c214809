// Threads that are started once and then share the work of many tensors.
#ifndef PERMAFROST_TRANSFORMS_PIPELINE_THREAD_TEAM_H_
#define PERMAFROST_TRANSFORMS_PIPELINE_THREAD_TEAM_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace permafrost {

// A pass makes one team and hands it all its work: starting threads for each tensor costs more than small tensors do.
// To be used by one thread at a time; what a task calls must not use the team that runs it.
class ThreadTeam {
 public:
  // A team of one runs everything on the caller's thread. Threads start with the first work that needs them.
  explicit ThreadTeam(int num_threads) : num_threads_(num_threads < 1 ? 1 : num_threads) {}
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls task(i) for each i in [0, count), each once, on any thread; returns when all are done. They start in order.
  void ForEach(size_t count, const std::function<void(size_t i)>& task);

  // Calls piece(start, end) for pieces of [0, count) that together cover it and start at multiples of kBlock
  // (float_ranges.h).
  void ForPieces(size_t count, const std::function<void(size_t start, size_t end)>& piece);

 private:
  void Work(const std::function<void(size_t)>& task, size_t count);
  void RunWorker();

  const int num_threads_;
  std::vector<std::thread> workers_;
  std::atomic<size_t> next_{0};

  std::mutex mutex_;
  std::condition_variable start_, done_;
  // All guarded by mutex_.
  const std::function<void(size_t)>* task_ = nullptr;
  size_t count_ = 0;
  size_t round_ = 0;   // How many calls there were; a worker takes part in each once.
  size_t active_ = 0;  // Workers that are not through with this round.
  bool stopped_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_THREAD_TEAM_H_
