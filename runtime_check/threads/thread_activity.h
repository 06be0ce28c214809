// Which threads worked when, for traces.
//
//   ThreadActivity activity;
//   session->Run(feeds);
//   for (const ThreadWork& work : activity.Take()) ...
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_

#include <cstdint>
#include <vector>

namespace permafrost {

// A piece of a loop that a ThreadPool divided. Loops of one piece run on their caller and are not told of.
struct ThreadWork {
  int thread = 0;        // In its team; 0 is the caller.
  int64_t start_ns = 0;  // Of the steady clock.
  int64_t end_ns = 0;
};

// Records what all pools of the process do while it lives, at two readings of the clock and a lock for each piece;
// without one a piece costs one test. What a library computes on threads of its own is not seen.
class ThreadActivity {
 public:
  // REQUIRES: no other lives.
  ThreadActivity();
  // REQUIRES: no loop runs.
  ~ThreadActivity();
  ThreadActivity(const ThreadActivity&) = delete;
  ThreadActivity& operator=(const ThreadActivity&) = delete;

  // What was recorded since the last call, in the order in which it ended. At most 2^20 pieces are kept.
  std::vector<ThreadWork> Take();
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_
