// What a thread pool tells of its work.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_

#include <atomic>
#include <cstdint>

namespace permafrost {

// Told of each piece of a loop: the thread's number in its team, 0 for the caller, and when it began and ended, in
// nanoseconds of the steady clock. Null: nobody asks. ThreadActivity sets it.
extern std::atomic<void (*)(int thread, int64_t start_ns, int64_t end_ns)> on_thread_work;

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_
