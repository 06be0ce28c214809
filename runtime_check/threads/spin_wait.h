// Waiting in a loop for another thread.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_

namespace permafrost {

// Turns of a waiting loop before a thread parks or yields: about 20 us, which bridges the gap between two loops of one
// inference and costs little when none follows.
inline constexpr int kSpins = 500;

// Tells the processor that a loop waits, once in each turn.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
