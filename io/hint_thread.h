// A thread whose work only makes other work faster.
#ifndef PERMAFROST_IO_HINT_THREAD_H_
#define PERMAFROST_IO_HINT_THREAD_H_

#include <system_error>
#include <thread>
#include <utility>

namespace permafrost {

// Does `work` on a thread of its own; where the system gives none, nowhere, and the result is not joinable.
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
