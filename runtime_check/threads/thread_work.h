// The hook through which a thread pool reports its work.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_

#include <atomic>
#include <cstdint>

namespace permafrost {

// Called for each piece of a loop, with the thread's number in its team (0 is the caller), and the start and the end in
// nanoseconds of the steady clock. Null: work is not reported. ThreadActivity sets it.
extern std::atomic<void (*)(int thread, int64_t start_ns, int64_t end_ns)> on_thread_work;

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_THREAD_WORK_H_
