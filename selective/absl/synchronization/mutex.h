// Replacement for Abseil's Mutex, without conditions. For short critical sections, because waiting threads only yield.
#ifndef PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_
#define PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_

#include <sched.h>

#include <atomic>

#define ABSL_GUARDED_BY(mutex)

namespace absl {
inline namespace selective {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() {
    while (is_held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void Unlock() { is_held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_held_{false};
};

class MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) : mutex_(*mutex) { mutex_.Lock(); }
  ~MutexLock() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_
