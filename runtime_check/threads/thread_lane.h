// Runs loops of a pool on one thread, where others of the pool do something else.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_LANE_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_LANE_H_

namespace permafrost {

#ifdef PERMAFROST_WITHOUT_THREADS
inline constexpr bool kHasThreads = false;
#else
inline constexpr bool kHasThreads = true;
#endif

// While it lives, loops that this thread gives to a ThreadPool run here, in the same pieces as ever, one after the
// other: results stay the same bit for bit. Also inside of a loop of the same pool.
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
