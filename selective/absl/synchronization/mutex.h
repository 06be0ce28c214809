// As Abseil's, as far as locking goes.
#ifndef PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_
#define PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_

#include <mutex>

#define ABSL_GUARDED_BY(mutex)

namespace absl {
inline namespace selective {

using Mutex = std::mutex;

class MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) : mutex_(*mutex) { mutex_.lock(); }
  ~MutexLock() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace selective
}  // namespace absl

#endif  // PERMAFROST_SELECTIVE_ABSL_SYNCHRONIZATION_MUTEX_H_
