// A thread pool that is started once and shared by the work on many tensors.
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

// A thread pool. A pass creates one team for all its work, since starting threads for each tensor costs more than small
// tensors take. A team is used by one thread at a time; a task must not use the team that runs it.
class ThreadTeam {
 public:
  // A team of one runs everything on the caller's thread. Threads start when the first work needs them.
  explicit ThreadTeam(int num_threads) : num_threads_(num_threads < 1 ? 1 : num_threads) {}
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls task(i) once for each i in [0, count), on any thread, and returns when all are done. Tasks start in order of
  // i.
  void ForEach(size_t count, const std::function<void(size_t i)>& task);

  // Calls piece(start, end) for pieces that partition [0, count) and start at multiples of kBlock (float_ranges.h).
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
  size_t round_ = 0;   // Number of calls so far; each worker joins each call once.
  size_t active_ = 0;  // Workers that have not finished this round.
  bool stopped_ = false;
};

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_PIPELINE_THREAD_TEAM_H_
