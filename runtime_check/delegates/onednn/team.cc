// The six functions of OpenMP that oneDNN calls, on a WorkerTeam.
#include "runtime_check/delegates/onednn/team.h"

#include <dlfcn.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "runtime_check/delegates/imports.h"
#include "runtime_check/threads/spin_wait.h"

// Of the compiler's OpenMP library, which has no header for what the compiler itself calls.
extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
extern "C" void GOMP_barrier();

namespace permafrost {
namespace onednn {
namespace {

// Lets threads of a team wait for each other, any number of times.
class Barrier {
 public:
  explicit Barrier(int size) : size_(size) {}

  void Wait() {
    const int round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        round_.store(round + 1, std::memory_order_release);
      }
      next_round_.notify_all();
      return;
    }
    const auto has_ended = [&] { return round_.load(std::memory_order_acquire) != round; };
    if (SpinWait::Until(has_ended)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    next_round_.wait(lock, has_ended);
  }

 private:
  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
  std::mutex mutex_;
  std::condition_variable next_round_;
};

// The calling thread's place in a team.
struct Place {
  int thread = 0;
  int team = 1;
  int max_threads = 1;       // As on the thread that started the team.
  bool is_parallel = false;  // In a team of several threads, or inside of one.
  Barrier* barrier = nullptr;
};

// Of the calling thread. A scope of one thread has no team.
thread_local WorkerTeam* threads = nullptr;
thread_local int num_threads_in_scope = 0;  // 0: no scope.
thread_local const Place* place = nullptr;  // Null: in no team.

class PlaceInScope {
 public:
  explicit PlaceInScope(const Place* next) : before_(place) { place = next; }
  ~PlaceInScope() { place = before_; }
  PlaceInScope(const PlaceInScope&) = delete;
  PlaceInScope& operator=(const PlaceInScope&) = delete;

 private:
  const Place* const before_;
};

// Other code of the process may use the same oneDNN: its threads are in no scope and in no team.
bool IsOurs() { return num_threads_in_scope != 0 || place != nullptr; }

void Parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags) {
  if (!IsOurs()) return GOMP_parallel(body, data, num_threads, flags);
  const int wanted = num_threads == 0 ? num_threads_in_scope : static_cast<int>(std::min(num_threads, 1u << 16));
  RunTeam(wanted, [&](int, int) { body(data); });
}

void WaitForTeam() {
  if (!IsOurs()) return GOMP_barrier();
  if (place != nullptr && place->barrier != nullptr) place->barrier->Wait();
}

int MaxThreads() {
  if (num_threads_in_scope != 0) return num_threads_in_scope;
  return place != nullptr ? place->max_threads : omp_get_max_threads();
}
int TeamSize() { return !IsOurs() ? omp_get_num_threads() : place == nullptr ? 1 : place->team; }
int ThreadNumber() { return !IsOurs() ? omp_get_thread_num() : place == nullptr ? 0 : place->thread; }
int InParallel() { return !IsOurs() ? omp_in_parallel() : place != nullptr && place->is_parallel; }

// Whether oneDNN runs on the pool. Otherwise it runs on OpenMP's threads, with the same results.
bool IsRedirected() {
  static const bool is_redirected = [] {
    // Not the address of the function, which in a program may be that of a stub in the program.
    const void* const inside = dlsym(RTLD_DEFAULT, "dnnl_primitive_execute");
    return inside != nullptr &&
           RedirectImports(inside, {
                                       {"GOMP_parallel", reinterpret_cast<void*>(&Parallel)},
                                       {"GOMP_barrier", reinterpret_cast<void*>(&WaitForTeam)},
                                       {"omp_get_max_threads", reinterpret_cast<void*>(&MaxThreads)},
                                       {"omp_get_num_threads", reinterpret_cast<void*>(&TeamSize)},
                                       {"omp_get_thread_num", reinterpret_cast<void*>(&ThreadNumber)},
                                       {"omp_in_parallel", reinterpret_cast<void*>(&InParallel)},
                                   });
  }();
  return is_redirected;
}

}  // namespace

ThreadsInScope::ThreadsInScope(int num_threads) : threads_before_(threads), num_threads_before_(num_threads_in_scope) {
  num_threads_in_scope = std::max(num_threads, 1);
  // A thread of a team computes what it is given alone.
  if (place == nullptr && num_threads > 1 && (threads == nullptr || threads->num_threads() < num_threads)) {
    lease_ = WorkerTeams::Global().Take(num_threads);
    threads = lease_.get();
  }
  if (!IsRedirected() && omp_get_max_threads() != num_threads_in_scope) {
    openmp_before_ = omp_get_max_threads();
    omp_set_num_threads(num_threads_in_scope);
  }
}

ThreadsInScope::~ThreadsInScope() {
  if (openmp_before_ != 0) omp_set_num_threads(openmp_before_);
  num_threads_in_scope = num_threads_before_;
  threads = threads_before_;
}

void RunTeam(int num_threads, absl::FunctionRef<void(int thread, int team)> body) {
  const bool is_alone = num_threads <= 1 || threads == nullptr || place != nullptr;
  const int team = is_alone ? 1 : std::min(num_threads, threads->num_threads());
  if (team == 1) {
    const Place alone{0, 1, MaxThreads(), place != nullptr && place->is_parallel, nullptr};
    const PlaceInScope in_place(&alone);
    return body(0, 1);
  }
  Barrier barrier(team);
  const int max_threads = num_threads_in_scope;
  threads->Run(team, [&](int piece, int) {
    const Place own{piece, team, max_threads, true, &barrier};
    const PlaceInScope in_place(&own);
    body(piece, team);
  });
}

void DivideLoop(int num_threads, int64_t count, absl::FunctionRef<void(int64_t begin, int64_t end, int thread)> body) {
  if (num_threads <= 1 || count <= 1) return body(0, count, 0);
  RunTeam(num_threads, [&](int thread, int team) {
    const int64_t begin = count * thread / team, end = count * (thread + 1) / team;
    if (begin < end) body(begin, end, thread);
  });
}

}  // namespace onednn
}  // namespace permafrost
