// Records when each thread worked, for traces.
//
//   ThreadActivity activity;
//   session->Run(feeds);
//   for (const ThreadWork& work : activity.Take()) ...
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_

#include <cstdint>
#include <vector>

namespace permafrost {

// A piece of a loop that a ThreadPool divided. Loops of one piece run on their caller and are not recorded.
struct ThreadWork {
  int thread = 0;        // Number in its team; 0 is the caller.
  int64_t start_ns = 0;  // Time of the steady clock.
  int64_t end_ns = 0;
};

// Records the work of all pools of the process during its lifetime, at two clock reads and a lock for each piece;
// without it a piece costs one test. Work of a library on threads of its own is not recorded.
class ThreadActivity {
 public:
  // Starts recording. REQUIRES: no other ThreadActivity exists.
  ThreadActivity();
  // Stops recording. REQUIRES: no loop is running.
  ~ThreadActivity();
  ThreadActivity(const ThreadActivity&) = delete;
  ThreadActivity& operator=(const ThreadActivity&) = delete;

  // Returns the pieces recorded since the last call, in the order of their ends. At most 2^20 pieces are kept.
  std::vector<ThreadWork> Take();
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_ACTIVITY_H_
