// Runs loops of a pool on one thread, while other threads of the pool do other work.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_LANE_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_LANE_H_

namespace permafrost {

#ifdef PERMAFROST_WITHOUT_THREADS
inline constexpr bool kHasThreads = false;
#else
inline constexpr bool kHasThreads = true;
#endif

// During its lifetime, loops that this thread starts on a ThreadPool run on this thread, in the same pieces as
// otherwise, one at a time. So results are bitwise identical. May be used inside a loop of the same pool.
class ThreadLane {
 public:
  ThreadLane();
  ~ThreadLane();
  ThreadLane(const ThreadLane&) = delete;
  ThreadLane& operator=(const ThreadLane&) = delete;

 private:
  const bool before_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_LANE_H_
