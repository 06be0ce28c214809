// Defines the functions of GCC's OpenMP library that oneDNN and the loops of this delegate call.
#include "runtime_check/delegates/onednn/openmp.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "runtime_check/threads/sleeping.h"
#include "runtime_check/threads/spin_wait.h"
#include "third_party/deferred/deferred_library.h"
#include "third_party/deferred/load_status.h"

namespace permafrost {
namespace onednn {
namespace {

// A parallel region that runs.
struct Region {
  explicit Region(int threads) : num_threads(threads) {}

  // Returns after all threads of the region have called it.
  void Meet() {
    const uint32_t meeting = num_meetings.load(std::memory_order_seq_cst);
    if (num_arrived.fetch_add(1, std::memory_order_seq_cst) + 1 == num_threads) {
      num_arrived.store(0, std::memory_order_relaxed);
      num_meetings.store(meeting + 1, std::memory_order_seq_cst);
      if (num_asleep.load(std::memory_order_seq_cst) != 0) Wake(num_meetings, num_threads);
      return;
    }
    const auto is_over = [&] { return num_meetings.load(std::memory_order_seq_cst) != meeting; };
    if (SpinWait::Until(is_over)) return;
    num_asleep.fetch_add(1, std::memory_order_seq_cst);
    while (!is_over()) SleepWhile(num_meetings, meeting);
    num_asleep.fetch_sub(1, std::memory_order_seq_cst);
  }

  const int num_threads;
  std::atomic<int> num_arrived{0}, num_asleep{0};
  std::atomic<uint32_t> num_meetings{0};
};

// What OpenMP's functions return to a thread.
struct ThreadState {
  int max_threads = 0;  // 0: outside of all scopes.
  WorkerTeam* team = nullptr;
  Region* region = nullptr;
  int id = 0;  // In the region.
};

thread_local ThreadState this_thread;

// The functions of GCC's library, behind the ones of the same names in this file.
struct Library {
  void (*parallel)(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
  void (*barrier)();
  int (*max_threads)();
  int (*num_threads)();
  int (*thread_num)();
  int (*in_parallel)();
};

template <typename F>
F Next(const char* name, F otherwise) {
  static void* const library =
      deferred::OpenMp().Load().empty() ? dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void* const found = dlsym(library == nullptr ? RTLD_NEXT : library, name);
  return found == nullptr ? otherwise : reinterpret_cast<F>(found);
}

const Library& Gcc() {
  static const Library library = {
      Next<decltype(Library::parallel)>("GOMP_parallel",
                                        [](void (*body)(void*), void* data, unsigned, unsigned) { body(data); }),
      Next<decltype(Library::barrier)>("GOMP_barrier", [] {}),
      Next<decltype(Library::max_threads)>("omp_get_max_threads", [] { return 1; }),
      Next<decltype(Library::num_threads)>("omp_get_num_threads", [] { return 1; }),
      Next<decltype(Library::thread_num)>("omp_get_thread_num", [] { return 0; }),
      Next<decltype(Library::in_parallel)>("omp_in_parallel", [] { return 0; }),
  };
  return library;
}

bool IsInScope() { return this_thread.max_threads != 0; }

// Calls the body once for each thread number. A thread of the team that has run its number also runs numbers that no
// other thread has started. They may wait for each other: there are no more of them than threads in the team.
void RunRegion(void (*body)(void*), void* data, int wanted) {
  const ThreadState caller = this_thread;
  const bool is_inside = caller.region != nullptr && caller.region->num_threads > 1;
  const int available = is_inside || caller.team == nullptr ? 1 : caller.team->num_threads();
  Region region(std::clamp(wanted, 1, available));
  const auto run = [&](int id) {
    const ThreadState before = std::exchange(this_thread, ThreadState{caller.max_threads, nullptr, &region, id});
    if (region.num_threads == 1) this_thread.team = caller.team;
    body(data);
    this_thread = before;
  };
  if (region.num_threads == 1) return run(0);
  caller.team->Run(region.num_threads, [&](WorkerTeam::Items* items) {
    for (int64_t id; items->Next(&id);) run(static_cast<int>(id));
  });
}

}  // namespace

// The library's own number is set, too, for a oneDNN that does not call the functions of this file.
ThreadsInScope::ThreadsInScope(int num_threads)
    : before_(std::exchange(this_thread.max_threads, std::max(1, num_threads))), library_before_(Gcc().max_threads()) {
  if (library_before_ != num_threads) omp_set_num_threads(num_threads);
}

ThreadsInScope::~ThreadsInScope() {
  if (library_before_ != this_thread.max_threads) omp_set_num_threads(library_before_);
  this_thread.max_threads = before_;
}

TeamInScope::TeamInScope(TeamLease lease)
    : lease_(std::move(lease)), before_(std::exchange(this_thread.team, lease_.team())) {}

TeamInScope::~TeamInScope() { this_thread.team = before_; }

}  // namespace onednn
}  // namespace permafrost

using permafrost::onednn::Gcc;
using permafrost::onednn::IsInScope;
using permafrost::onednn::Region;
using permafrost::onednn::this_thread;

#pragma GCC visibility push(default)

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags) {
  if (!IsInScope()) return Gcc().parallel(body, data, num_threads, flags);
  permafrost::onednn::RunRegion(body, data, num_threads == 0 ? this_thread.max_threads : static_cast<int>(num_threads));
}

void GOMP_barrier() {
  if (!IsInScope()) return Gcc().barrier();
  Region* const region = this_thread.region;
  if (region != nullptr && region->num_threads > 1) region->Meet();
}

int omp_get_max_threads() noexcept { return IsInScope() ? this_thread.max_threads : Gcc().max_threads(); }

int omp_get_num_threads() noexcept {
  if (!IsInScope()) return Gcc().num_threads();
  return this_thread.region == nullptr ? 1 : this_thread.region->num_threads;
}

int omp_get_thread_num() noexcept { return IsInScope() ? this_thread.id : Gcc().thread_num(); }

int omp_in_parallel() noexcept {
  if (!IsInScope()) return Gcc().in_parallel();
  return this_thread.region != nullptr && this_thread.region->num_threads > 1 ? 1 : 0;
}

}  // extern "C"

#pragma GCC visibility pop

namespace permafrost {
namespace onednn {

absl::Status InitializeLibrary() {
  static const absl::Status status = [] {
    for (deferred::Library* library : {&deferred::OneDnn(), &deferred::OpenMp()}) {
      if (absl::Status loaded = deferred::LoadStatus(*library); !loaded.ok()) return loaded;
    }
#define REPLACE(function) deferred::OneDnn().Replace(#function, reinterpret_cast<void*>(&function))
    REPLACE(GOMP_parallel);
    REPLACE(GOMP_barrier);
    REPLACE(omp_get_max_threads);
    REPLACE(omp_get_num_threads);
    REPLACE(omp_get_thread_num);
    REPLACE(omp_in_parallel);
#undef REPLACE
    return absl::OkStatus();
  }();
  return status;
}

}  // namespace onednn
}  // namespace permafrost
