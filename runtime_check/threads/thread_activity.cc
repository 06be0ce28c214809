// Stores the work that thread pools report.
#include "runtime_check/threads/thread_activity.h"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <mutex>
#include <utility>

#include "runtime_check/threads/thread_work.h"

namespace permafrost {

namespace {

constexpr size_t kMostKept = size_t{1} << 20;

struct Kept {
  std::mutex mutex;
  std::vector<ThreadWork> work;
};

Kept& TheKept() {
  static auto* const kept = new Kept;
  return *kept;
}

void Keep(int thread, int64_t start_ns, int64_t end_ns) {
  Kept& kept = TheKept();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  if (kept.work.size() < kMostKept) kept.work.push_back({thread, start_ns, end_ns});
}

}  // namespace

ThreadActivity::ThreadActivity() {
  assert(on_thread_work.load() == nullptr);
  Take();
  on_thread_work.store(&Keep, std::memory_order_release);
}

ThreadActivity::~ThreadActivity() { on_thread_work.store(nullptr, std::memory_order_release); }

std::vector<ThreadWork> ThreadActivity::Take() {
  Kept& kept = TheKept();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  return std::exchange(kept.work, {});
}

}  // namespace permafrost
