// Starts background threads whose work is an optimisation only.
#ifndef PERMAFROST_IO_HINT_THREAD_H_
#define PERMAFROST_IO_HINT_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

namespace permafrost {

// Runs `work` on a new thread. If the system cannot create a thread, the work is skipped and the result is not
// joinable.
template <typename Work>
std::thread StartHintThread(Work work) {
#if defined(__cpp_exceptions)
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return std::thread();
  }
#else
  return std::thread(std::move(work));
#endif
}

}  // namespace permafrost

#endif  // PERMAFROST_IO_HINT_THREAD_H_
