// Sleeps until a word of memory changes: the futex of Linux. Unlike a std::mutex with a condition variable, its state
// is the word alone, so a process that forks can reset it.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_SLEEPING_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_SLEEPING_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace permafrost {

// FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG, from linux/futex.h, which not every C library comes with.
inline constexpr int kFutexWait = 0 | 128;
inline constexpr int kFutexWake = 1 | 128;

// Sleeps if the word has this value, until Wake is called for it. May also return earlier: call it in a loop.
inline void SleepWhile(const std::atomic<uint32_t>& word, uint32_t value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, kFutexWait, value, nullptr, nullptr, 0);
}

// Wakes up to `count` threads that sleep on the word.
inline void Wake(const std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, kFutexWake, count, nullptr, nullptr, 0);
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_SLEEPING_H_
