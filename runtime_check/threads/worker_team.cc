// The team's workers. Each waits for a loop, and runs pieces of it until all are claimed.
#include "runtime_check/threads/worker_team.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime_check/threads/spin_wait.h"

namespace permafrost {

#ifdef PERMAFROST_WITHOUT_THREADS

// For a build that runs everything on the caller's thread, whatever number is asked for.
class WorkerTeam::Team {
 public:
  explicit Team(int) {}
  int num_threads() const { return 1; }
  void Run(int pieces, absl::FunctionRef<void(int, int)> body) {
    for (int i = 0; i < pieces; ++i) body(i, 0);
  }
};

#else

class WorkerTeam::Team {
 public:
  explicit Team(int num_threads) : claims_(static_cast<size_t>(num_threads) * kPiecesPerThread) {
    workers_.reserve(static_cast<size_t>(num_threads - 1));
#if defined(__cpp_exceptions)
    try {
      Start(num_threads);
    } catch (const std::system_error&) {
      // The system gives no more: fewer do the same.
    }
#else
    Start(num_threads);
#endif
  }

  ~Team() {
    Publish(kStop);
    for (std::thread& worker : workers_) worker.join();
  }

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  void Run(int pieces, absl::FunctionRef<void(int, int)> body) {
    body_ = &body;
    unfinished_.store(pieces, std::memory_order_relaxed);
    loop_number_ += kOneLoop;
    Publish(loop_number_ | static_cast<uint64_t>(pieces));
    RunUnclaimed(0, loop_number_, pieces);
    const auto is_done = [this] { return unfinished_.load(std::memory_order_seq_cst) == 0; };
    if (SpinWait::Until(is_done)) return;
    SpinWait::NotePreemption(&caller_switches_);
    std::unique_lock<std::mutex> lock(mutex_);
    caller_waits_.store(true, std::memory_order_seq_cst);
    done_.wait(lock, is_done);
    caller_waits_.store(false, std::memory_order_relaxed);
  }

 private:
  // The signal is one word, so that a worker without a piece in a loop need not read that loop's variables, which may
  // change at any time: the loop's number, and in the low bits the number of pieces.
  static constexpr uint64_t kOneLoop = 1 << 16;
  static constexpr uint64_t kStop = ~uint64_t{0};
  static_assert(kMostThreads * kPiecesPerThread < kOneLoop);

  void Start(int num_threads) {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { Work(i); });
  }

  void Publish(uint64_t signal) {
    signal_.store(signal, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard<std::mutex> lock(mutex_); }  // No worker is between its last look at the signal and its sleep.
    wake_.notify_all();
  }

  // Claims a piece of the loop: each is claimed once, and none of a loop that has ended, whose pieces all have claims
  // of that loop or of a later one.
  bool Claim(int piece, uint64_t loop) {
    std::atomic<uint64_t>& claim = claims_[static_cast<size_t>(piece)];
    uint64_t last = claim.load(std::memory_order_relaxed);
    while (last < loop) {
      if (claim.compare_exchange_weak(last, loop, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  // Runs pieces until all are claimed: first those of this thread, so that a thread finds in its cache the results of
  // the loop before, then those of the others.
  void RunUnclaimed(int thread, uint64_t loop, int pieces) {
    const auto team = static_cast<int>(claims_.size()) / kPiecesPerThread;  // As asked for.
    for (int turn = 0; turn < team; ++turn) {
      const int owner = thread + turn < team ? thread + turn : thread + turn - team;
      for (int piece = owner; piece < pieces; piece += team) {
        if (!Claim(piece, loop)) continue;
        (*body_)(piece, thread);
        if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1 && thread != 0) WakeCaller();
      }
    }
  }

  void WakeCaller() {
    if (!caller_waits_.load(std::memory_order_seq_cst)) return;
    { std::lock_guard<std::mutex> lock(mutex_); }  // The caller is not between its last look and its sleep.
    done_.notify_one();
  }

  uint64_t NextSignal(uint64_t last, int64_t* switches) {
    const auto has_next = [&] { return signal_.load(std::memory_order_seq_cst) != last; };
    if (!SpinWait::Until(has_next)) {
      SpinWait::NotePreemption(switches);
      std::unique_lock<std::mutex> lock(mutex_);
      parked_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, has_next);
      parked_.fetch_sub(1, std::memory_order_seq_cst);
    }
    return signal_.load(std::memory_order_acquire);
  }

  void Work(int index) {
    uint64_t signal = 0;
    int64_t switches = 0;
    while (true) {
      signal = NextSignal(signal, &switches);
      if (signal == kStop) return;
      const uint64_t pieces = signal % kOneLoop;
      RunUnclaimed(index, signal - pieces, static_cast<int>(pieces));
    }
  }

  const absl::FunctionRef<void(int, int)>* body_ = nullptr;
  uint64_t loop_number_ = 0;
  int64_t caller_switches_ = 0;
  std::atomic<uint64_t> signal_{0};
  std::atomic<int> unfinished_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> caller_waits_{false};
  std::vector<std::atomic<uint64_t>> claims_;  // By piece: the last loop in which it was claimed.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
};

#endif

WorkerTeam::WorkerTeam(int num_threads) : team_(std::make_unique<Team>(std::clamp(num_threads, 1, kMostThreads))) {}

WorkerTeam::~WorkerTeam() = default;

int WorkerTeam::num_threads() const { return team_->num_threads(); }

void WorkerTeam::Run(int pieces, absl::FunctionRef<void(int, int)> body) { team_->Run(pieces, body); }

}  // namespace permafrost
