// A thread pool that is started once and shared by the work on many tensors.
#include "transforms/pipeline/thread_team.h"

#include <algorithm>

#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

// Elements per piece: tens of microseconds of work, with input and output in the second-level cache.
constexpr size_t kPiece = 64 * kBlock;

}  // namespace

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::Work(const std::function<void(size_t)>& task, size_t count) {
  for (size_t i = next_.fetch_add(1); i < count; i = next_.fetch_add(1)) task(i);
}

void ThreadTeam::RunWorker() {
  size_t round = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stopped_ || round_ != round; });
    if (stopped_) return;
    round = round_;
    const std::function<void(size_t)>* const task = task_;
    const size_t count = count_;
    lock.unlock();
    Work(*task, count);
    lock.lock();
    if (--active_ == 0) done_.notify_one();
  }
}

void ThreadTeam::ForEach(size_t count, const std::function<void(size_t i)>& task) {
  if (num_threads_ == 1 || count <= 1) {
    for (size_t i = 0; i < count; ++i) task(i);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    task_ = &task;
    count_ = count;
    next_ = 0;
    ++round_;
    active_ = num_threads_ - 1;
  }
  // A new worker has not joined any round, so it joins this one.
  while (static_cast<int>(workers_.size()) < num_threads_ - 1) workers_.emplace_back([this] { RunWorker(); });
  start_.notify_all();
  Work(task, count);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [&] { return active_ == 0; });
}

void ThreadTeam::ForPieces(size_t count, const std::function<void(size_t start, size_t end)>& piece) {
  ForEach((count + kPiece - 1) / kPiece, [&](size_t i) { piece(i * kPiece, std::min(count, (i + 1) * kPiece)); });
}

}  // namespace permafrost
