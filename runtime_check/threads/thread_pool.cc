// The team's workers: each waits for a loop, runs its piece of it, and says so.
#include "runtime_check/threads/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime_check/threads/spin_wait.h"
#include "runtime_check/threads/thread_lane.h"
#include "runtime_check/threads/thread_work.h"

namespace permafrost {

std::atomic<void (*)(int thread, int64_t start_ns, int64_t end_ns)> on_thread_work{nullptr};

namespace {

thread_local bool runs_loops_alone = false;

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Piece {
  int64_t begin;
  int64_t end;
};

// Piece `index` of `pieces` almost equal ones of [0, count): the first count % pieces are one longer.
Piece PieceOf(int64_t count, int64_t pieces, int64_t index) {
  const int64_t size = count / pieces;
  const int64_t longer = count % pieces;
  const int64_t begin = index * size + std::min(index, longer);
  return {begin, begin + size + (index < longer ? 1 : 0)};
}

void RunPiece(int thread, Piece piece, const absl::FunctionRef<void(int64_t, int64_t)>& body) {
  const auto tell = on_thread_work.load(std::memory_order_acquire);
  if (tell == nullptr) return body(piece.begin, piece.end);
  const int64_t start_ns = NowNanoseconds();
  body(piece.begin, piece.end);
  tell(thread, start_ns, NowNanoseconds());
}

}  // namespace

ThreadLane::ThreadLane() : before_(std::exchange(runs_loops_alone, true)) {}

ThreadLane::~ThreadLane() { runs_loops_alone = before_; }

#ifdef PERMAFROST_WITHOUT_THREADS

// For a build that runs everything on the caller's thread, whatever number is asked for.
class ThreadPool::Team {
 public:
  explicit Team(int) {}
  int num_threads() const { return 1; }
  void Run(int64_t count, int64_t, absl::FunctionRef<void(int64_t, int64_t)> body) { body(0, count); }
};

#else

class ThreadPool::Team {
 public:
  explicit Team(int num_threads) {
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

  void Run(int64_t count, int64_t pieces, absl::FunctionRef<void(int64_t, int64_t)> body) {
    body_ = &body;
    count_ = count;
    unfinished_.store(static_cast<int>(pieces - 1), std::memory_order_relaxed);
    loop_number_ += kOneLoop;
    Publish(loop_number_ | static_cast<uint64_t>(pieces));
    RunPiece(0, PieceOf(count, pieces, 0), body);
    for (int turn = 0; unfinished_.load(std::memory_order_acquire) != 0; ++turn) {
      if (turn < kSpins) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  // The signal is one word, so that a worker without a piece in a loop need not look at that loop's variables, which
  // may change under it: the loop's number, and in the low bits how many pieces there are.
  static constexpr uint64_t kOneLoop = 1 << 16;
  static constexpr uint64_t kStop = ~uint64_t{0};

  void Start(int num_threads) {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { Work(i); });
  }

  void Publish(uint64_t signal) {
    signal_.store(signal, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard<std::mutex> lock(mutex_); }  // No worker is between its last look at the signal and its sleep.
    wake_.notify_all();
  }

  uint64_t NextSignal(uint64_t last) {
    for (int turn = 0; turn < kSpins; ++turn) {
      const uint64_t signal = signal_.load(std::memory_order_acquire);
      if (signal != last) return signal;
      Pause();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    parked_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return signal_.load(std::memory_order_seq_cst) != last; });
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return signal_.load(std::memory_order_acquire);
  }

  void Work(int index) {
    uint64_t signal = 0;
    while (true) {
      signal = NextSignal(signal);
      if (signal == kStop) return;
      const auto pieces = static_cast<int64_t>(signal % kOneLoop);
      if (index >= pieces) continue;
      RunPiece(index, PieceOf(count_, pieces, index), *body_);
      unfinished_.fetch_sub(1, std::memory_order_release);
    }
  }

  const absl::FunctionRef<void(int64_t, int64_t)>* body_ = nullptr;
  int64_t count_ = 0;
  uint64_t loop_number_ = 0;
  std::atomic<uint64_t> signal_{0};
  std::atomic<int> unfinished_{0};
  std::atomic<int> parked_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

#endif

ThreadPool::ThreadPool(int num_threads) : team_(std::make_unique<Team>(std::clamp(num_threads, 1, kMostThreads))) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return team_->num_threads(); }

void ThreadPool::ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  const int64_t worthwhile = (count - 1) / std::max<int64_t>(grain, 1) + 1;
  const int64_t pieces = std::min<int64_t>(worthwhile, team_->num_threads());
  if (pieces == 1) return body(0, count);
  if (runs_loops_alone) {
    for (int64_t i = 0; i < pieces; ++i) {
      const Piece piece = PieceOf(count, pieces, i);
      body(piece.begin, piece.end);
    }
    return;
  }
  team_->Run(count, pieces, body);
}

}  // namespace permafrost
