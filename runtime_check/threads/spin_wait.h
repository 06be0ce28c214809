// Waits in a loop for a bounded time, before a thread sleeps.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace permafrost {

// Spinning is faster than sleeping only while each thread of a team has a processor. A thread that did not get its
// processor for a while shows that the processors are crowded, so all threads of the process then spin for a short time
// only. This phase grows while preemptions follow each other, as beside another busy process, and is short after a
// single one.
class SpinWait {
 public:
  // Returns true as soon as done() is true. Returns false after kMostNs, or after kCrowdedNs while the processors are
  // crowded: the calling thread then sleeps.
  template <typename Done>
  static bool Until(const Done& done) {
    if (done()) return true;
    const int64_t start = Now();
    const int64_t end = start + (IsCrowded(start) ? kCrowdedNs : kMostNs);
    bool is_checked = false;
    for (int64_t last = start; last < end;) {
      for (int i = 0; i < kPauses; ++i) {
        if (done()) return true;
        Pause();
      }
      const int64_t now = Now();
      if (now - last > kPreemptedNs) {
        NoteCrowd(now);
        break;
      }
      if (!is_checked && now - start > kCrowdedNs) {
        is_checked = true;
        NoteLostTime(now);
        if (IsCrowded(now)) break;
      }
      last = now;
    }
    if (done()) return true;
    EndWork();
    return false;
  }

  // The calling thread does not sleep between these calls. Time that it does not get of its processor meanwhile is thus
  // a preemption. Until ends the work, too, where it returns false.
  static void StartWork() { this_thread_ = {Now(), ProcessorTime()}; }
  static void EndWork() { this_thread_.time = 0; }

 private:
  // Bridges the serial steps between two parallel loops of one inference. With 50 us, two threads took 1.2
  // (mobilenet_v2) and 1.5 (selfie) times as long as with 1 ms, and with 200 us up to 1.3 times.
  static constexpr int64_t kMostNs = 1'000'000;
  // The cost of a sleep and a wake-up, so that spinning for it at most doubles that cost.
  static constexpr int64_t kCrowdedNs = 5'000;
  // Pauses between two readings of the clock: 0.2 to 2 us, by processor.
  static constexpr int kPauses = 32;
  // An interrupt takes less; the shortest time slice of Linux (0.75 ms) takes more.
  static constexpr int64_t kPreemptedNs = 300'000;
  // A crowded phase lasts this long after a single preemption: less than one time slice.
  static constexpr int64_t kShortCrowdNs = 1'000'000;
  // A phase that follows another one lasts four times as long, up to this limit.
  static constexpr int64_t kLongCrowdNs = 100'000'000;
  // Two phases follow each other if less than this time, or than the first one took, lies between them: a spinning
  // thread is preempted after one or two time slices if another process wants its processor.
  static constexpr int64_t kCrowdGapNs = 10'000'000;

  struct Times {
    int64_t time;  // 0: not at work.
    int64_t processor_time;
  };

  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  static bool IsCrowded(int64_t now) { return now < crowded_until_ns_.load(std::memory_order_relaxed); }

  // Nanoseconds in which the calling thread ran. Takes about 0.3 us.
  static int64_t ProcessorTime() {
    timespec time;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0 ? 0 : time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }

  // Finds preemptions since the last call, or since StartWork.
  static void NoteLostTime(int64_t now) {
    const Times before = this_thread_;
    this_thread_ = {now, ProcessorTime()};
    const int64_t lost = (now - before.time) - (this_thread_.processor_time - before.processor_time);
    if (before.time != 0 && lost > kPreemptedNs) NoteCrowd(now);
  }

  // Threads that note the same preemption at once may lengthen the phase twice.
  static void NoteCrowd(int64_t now) {
    const int64_t until = crowded_until_ns_.load(std::memory_order_relaxed);
    if (now < until) return;
    const int64_t last = phase_ns_.load(std::memory_order_relaxed);
    const bool follows = now - until < std::max(last, kCrowdGapNs);
    const int64_t phase = follows ? std::min(4 * last, kLongCrowdNs) : kShortCrowdNs;
    phase_ns_.store(phase, std::memory_order_relaxed);
    crowded_until_ns_.store(now + phase, std::memory_order_relaxed);
  }

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  // Hidden explicitly: GCC exports thread-local inline variables from shared libraries with hidden symbols, too.
  __attribute__((visibility("hidden"))) static inline thread_local Times this_thread_{0, 0};
  static inline std::atomic<int64_t> crowded_until_ns_{0};
  static inline std::atomic<int64_t> phase_ns_{kShortCrowdNs};  // The length of the last crowded phase.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_SPIN_WAIT_H_
