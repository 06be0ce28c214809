// Waits in a loop for a bounded time, before a thread parks.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace permafrost {

// Spinning is only faster than parking while every thread of a team has a processor. A thread that was preempted shows
// that another thread wants its processor, so all threads of the process then park at once for a while.
class SpinWait {
 public:
  // Returns true as soon as done() is true. Returns false after kMostNs, and at once while the processors are crowded:
  // the caller then parks.
  template <typename Done>
  static bool Until(const Done& done) {
    if (done()) return true;
    const int64_t start = Now();
    if (start < crowded_until_ns_.load(std::memory_order_relaxed)) return false;
    for (int64_t last = start; last - start < kMostNs;) {
      for (int i = 0; i < kPauses; ++i) {
        if (done()) return true;
        Pause();
      }
      const int64_t now = Now();
      if (now - last > kPreemptedNs) {
        NoteCrowd(now);
        return done();
      }
      last = now;
    }
    return done();
  }

  // Records whether the calling thread was preempted since `*switches`, which is updated. Takes about 0.3 us.
  static void NotePreemption(int64_t* switches) {
    struct rusage usage;
#if defined(RUSAGE_THREAD)
    if (getrusage(RUSAGE_THREAD, &usage) != 0 || usage.ru_nivcsw <= *switches) return;
    *switches = usage.ru_nivcsw;
    NoteCrowd(Now());
#else
    (void)usage;
    (void)switches;
#endif
  }

 private:
  // Bridges the gap between two loops of one inference: most are shorter.
  static constexpr int64_t kMostNs = 50'000;
  // Pauses between two readings of the clock: 0.2 to 2 us, by processor.
  static constexpr int kPauses = 32;
  // An interrupt takes less; the scheduler's shortest time slice (0.75 ms in Linux) takes more.
  static constexpr int64_t kPreemptedNs = 300'000;
  // Some time slices of another process, after which a preemption is looked for again.
  static constexpr int64_t kCrowdedNs = 30'000'000;

  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  static void NoteCrowd(int64_t now) { crowded_until_ns_.store(now + kCrowdedNs, std::memory_order_relaxed); }

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static inline std::atomic<int64_t> crowded_until_ns_{0};
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
