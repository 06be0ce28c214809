// Divides loops into one piece for each thread of a team.
#include "runtime_check/threads/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "runtime_check/threads/cancellation.h"
#include "runtime_check/threads/thread_lane.h"
#include "runtime_check/threads/thread_work.h"
#include "runtime_check/threads/worker_team.h"

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

// Runs the body on a piece. A run that can be cancelled asks between blocks of this many grains, and skips the blocks
// that are left. A grain takes at least microseconds, so that the question costs nothing in comparison. The size of a
// block depends on the grain alone, which keeps results reproducible.
constexpr int64_t kGrainsPerBlock = 1024;

void RunPiece(int64_t begin, int64_t end, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (selection::kIsSelective || CancellationOfThread() == nullptr) return body(begin, end);
  int64_t block;
  if (__builtin_mul_overflow(std::max<int64_t>(grain, 1), kGrainsPerBlock, &block)) block = end - begin;
  while (end - begin > block) {
    body(begin, begin + block);
    begin += block;
    if (RunIsCancelled()) return;
  }
  body(begin, end);
}

}  // namespace

ThreadLane::ThreadLane() : before_(std::exchange(runs_loops_alone, true)) {}

ThreadLane::~ThreadLane() { runs_loops_alone = before_; }

class ThreadPool::Team : public WorkerTeam {
 public:
  using WorkerTeam::WorkerTeam;
};

ThreadPool::ThreadPool(int num_threads) : team_(std::make_unique<Team>(num_threads)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return team_->num_threads(); }

void ThreadPool::ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  const int64_t worthwhile = (count - 1) / std::max<int64_t>(grain, 1) + 1;
  const int64_t pieces = std::min<int64_t>(worthwhile, team_->num_threads());
  if (!kHasThreads || pieces == 1)
    return RunPiece(0, count, grain, body);  // Known at compile time in a build without threads.
  if (runs_loops_alone) {
    for (int64_t i = 0; i < pieces; ++i) {
      const Piece piece = PieceOf(count, pieces, i);
      RunPiece(piece.begin, piece.end, grain, body);
    }
    return;
  }
  const CancellationFunction* const is_cancelled = selection::kIsSelective ? nullptr : CancellationOfThread();
  const auto tell = on_thread_work.load(std::memory_order_acquire);
  team_->Run(pieces, [&](WorkerTeam::Items* items) {
    const CancellationScope scope(is_cancelled);
    for (int64_t index; items->Next(&index);) {
      const Piece piece = PieceOf(count, pieces, index);
      const int64_t start_ns = tell == nullptr ? 0 : NowNanoseconds();
      RunPiece(piece.begin, piece.end, grain, body);
      if (tell != nullptr) tell(items->thread(), start_ns, NowNanoseconds());
    }
  });
}

}  // namespace permafrost
