// Defines the functions of pthreadpool that XNNPACK and the loops of this delegate call.
#include "runtime_check/delegates/xnnpack/pools.h"

#include <dlfcn.h>
#include <xnnpack.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "runtime_check/threads/thread_lane.h"
#include "third_party/deferred/deferred_library.h"

namespace permafrost {
namespace xnnpack {
namespace {

// The team of the lease of a thread.
thread_local WorkerTeam* this_team = nullptr;
// Whether a loop on the pool of the leases arrived at the functions of this file.
std::atomic<bool> has_loop_arrived{false};

// The pool that all leases pass to XNNPACK. It is one of pthreadpool, with one thread, so that pthreadpool can run its
// loops as well.
pthreadpool_t PoolOfLeases() {
  static pthreadpool_t const pool = pthreadpool_create(1);
  return pool;
}

// Returns the function of pthreadpool behind the one of the same name in this file.
void* Next(const char* name) {
  static void* const library =
      deferred::Xnnpack().Load().empty() ? dlopen("libpthreadpool.so.0", RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  return dlsym(library == nullptr ? RTLD_NEXT : library, name);
}

template <typename Result, typename... Arguments>
Result Call(void* function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

// Flushes denormals to zero during its lifetime, if the flags ask for it.
class FlushDenormals {
 public:
  explicit FlushDenormals(uint32_t flags) : is_on_((flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0) {
    if (!is_on_) return;
#if defined(__SSE2__)
    before_ = _mm_getcsr();
    _mm_setcsr(static_cast<unsigned>(before_) | 0x8040);  // Flush to zero, and denormals are zero.
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t{1} << 24)));  // Flush to zero.
#endif
  }
  ~FlushDenormals() {
    if (!is_on_) return;
#if defined(__SSE2__)
    _mm_setcsr(static_cast<unsigned>(before_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" ::"r"(before_));
#endif
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  const bool is_on_;
  uint64_t before_ = 0;
};

bool IsOnTeam(pthreadpool_t pool) {
  if (pool == nullptr || pool != PoolOfLeases()) return false;
  has_loop_arrived.store(true, std::memory_order_relaxed);
  return this_team != nullptr;
}

// A pool of pthreadpool for the calling thread, if XNNPACK does not call the functions of this file. Null if its
// threads cannot be started.
pthreadpool_t PoolOfThread(int num_threads) {
  static thread_local std::unique_ptr<struct pthreadpool, decltype(&pthreadpool_destroy)> pool(nullptr,
                                                                                               &pthreadpool_destroy);
  const auto wanted = static_cast<size_t>(num_threads);
  if (pool == nullptr || pthreadpool_get_threads_count(pool.get()) != wanted) pool.reset(pthreadpool_create(wanted));
  return pool.get();
}

// Calls the task for each tile of a grid. The last dimensions have tiles; the tiles of the others are single indices.
template <size_t kDims, size_t kTiled, typename Task>
void RunGrid(Task task, void* context, const std::array<size_t, kDims>& ranges, const std::array<size_t, kTiled>& tiles,
             uint32_t flags) {
  std::array<size_t, kDims> steps, counts;
  steps.fill(1);
  std::copy(tiles.begin(), tiles.end(), steps.end() - kTiled);
  size_t count = 1;
  for (size_t dim = 0; dim < kDims; ++dim) {
    counts[dim] = (ranges[dim] + steps[dim] - 1) / steps[dim];
    count *= counts[dim];
  }
  const auto call = [&](const std::array<size_t, kDims>& at) {
    std::array<size_t, kTiled> sizes;
    for (size_t i = 0; i < kTiled; ++i) {
      const size_t dim = kDims - kTiled + i;
      sizes[i] = std::min(tiles[i], ranges[dim] - at[dim]);
    }
    std::apply([&](auto... values) { task(context, values...); }, std::tuple_cat(at, sizes));
  };
  this_team->Run(static_cast<int64_t>(count), [&](WorkerTeam::Items* items) {
    const FlushDenormals flush(flags);
    for (int64_t begin, end; items->NextRange(&begin, &end);) {
      std::array<size_t, kDims> at;
      auto rest = static_cast<size_t>(begin);
      for (size_t dim = kDims; dim-- > 0; rest /= counts[dim]) at[dim] = rest % counts[dim] * steps[dim];
      for (; begin < end; ++begin) {
        call(at);
        for (size_t dim = kDims; dim-- > 0;) {
          at[dim] += steps[dim];
          if (at[dim] < ranges[dim]) break;
          at[dim] = 0;
        }
      }
    }
  });
}

// Returns whether XNNPACK calls the functions of this file: runs an operator that copies a number.
bool FindWhetherLoopsArrive() {
  xnn_operator_t copy = nullptr;
  if (xnn_create_copy_nc_x32(1, 1, 1, 0, &copy) != xnn_status_success) return false;
  const std::unique_ptr<struct xnn_operator, decltype(&xnn_delete_operator)> owner(copy, &xnn_delete_operator);
  const float input = 0;
  float output;
  return xnn_setup_copy_nc_x32(copy, 1, &input, &output, PoolOfLeases()) == xnn_status_success &&
         xnn_run_operator(copy, PoolOfLeases()) == xnn_status_success && has_loop_arrived.load();
}

}  // namespace

absl::StatusOr<PoolLease> PoolLease::Take(int num_threads) {
  if (num_threads <= 1 || !kHasThreads) return PoolLease(*TeamLease::Take(1));
  static const bool do_loops_arrive = FindWhetherLoopsArrive();
  absl::StatusOr<TeamLease> team = TeamLease::Take(do_loops_arrive ? num_threads : 1);
  if (!team.ok()) return team.status();
  PoolLease lease(*std::move(team));
  if (do_loops_arrive) {
    lease.pool_ = PoolOfLeases();
    this_team = lease.lease_.team();
    return lease;
  }
  lease.pool_ = PoolOfThread(num_threads);
  if (lease.pool_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the system did not start ", num_threads - 1, " threads"));
  }
  return lease;
}

PoolLease::~PoolLease() {
  if (lease_.team() != nullptr) this_team = nullptr;
}

}  // namespace xnnpack
}  // namespace permafrost

using permafrost::xnnpack::Call;
using permafrost::xnnpack::IsOnTeam;
using permafrost::xnnpack::Next;
using permafrost::xnnpack::RunGrid;

// Passes a call on to pthreadpool.
#define PASS_ON(type, function, ...)           \
  do {                                         \
    static void* const next = Next(#function); \
    return Call<type>(next, __VA_ARGS__);      \
  } while (false)

#pragma GCC visibility push(default)

extern "C" {

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  if (IsOnTeam(pool)) return static_cast<size_t>(permafrost::xnnpack::this_team->num_threads());
  PASS_ON(size_t, pthreadpool_get_threads_count, pool);
}

void pthreadpool_parallelize_1d(pthreadpool_t pool, pthreadpool_task_1d_t task, void* context, size_t i,
                                uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<1, 0>(task, context, {i}, {}, flags);
  PASS_ON(void, pthreadpool_parallelize_1d, pool, task, context, i, flags);
}

void pthreadpool_parallelize_1d_tile_1d(pthreadpool_t pool, pthreadpool_task_1d_tile_1d_t task, void* context, size_t i,
                                        size_t tile_i, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<1, 1>(task, context, {i}, {tile_i}, flags);
  PASS_ON(void, pthreadpool_parallelize_1d_tile_1d, pool, task, context, i, tile_i, flags);
}

void pthreadpool_parallelize_2d(pthreadpool_t pool, pthreadpool_task_2d_t task, void* context, size_t i, size_t j,
                                uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<2, 0>(task, context, {i, j}, {}, flags);
  PASS_ON(void, pthreadpool_parallelize_2d, pool, task, context, i, j, flags);
}

void pthreadpool_parallelize_2d_tile_1d(pthreadpool_t pool, pthreadpool_task_2d_tile_1d_t task, void* context, size_t i,
                                        size_t j, size_t tile_j, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<2, 1>(task, context, {i, j}, {tile_j}, flags);
  PASS_ON(void, pthreadpool_parallelize_2d_tile_1d, pool, task, context, i, j, tile_j, flags);
}

void pthreadpool_parallelize_2d_tile_2d(pthreadpool_t pool, pthreadpool_task_2d_tile_2d_t task, void* context, size_t i,
                                        size_t j, size_t tile_i, size_t tile_j, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<2, 2>(task, context, {i, j}, {tile_i, tile_j}, flags);
  PASS_ON(void, pthreadpool_parallelize_2d_tile_2d, pool, task, context, i, j, tile_i, tile_j, flags);
}

void pthreadpool_parallelize_3d(pthreadpool_t pool, pthreadpool_task_3d_t task, void* context, size_t i, size_t j,
                                size_t k, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<3, 0>(task, context, {i, j, k}, {}, flags);
  PASS_ON(void, pthreadpool_parallelize_3d, pool, task, context, i, j, k, flags);
}

void pthreadpool_parallelize_3d_tile_2d(pthreadpool_t pool, pthreadpool_task_3d_tile_2d_t task, void* context, size_t i,
                                        size_t j, size_t k, size_t tile_j, size_t tile_k, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<3, 2>(task, context, {i, j, k}, {tile_j, tile_k}, flags);
  PASS_ON(void, pthreadpool_parallelize_3d_tile_2d, pool, task, context, i, j, k, tile_j, tile_k, flags);
}

void pthreadpool_parallelize_4d(pthreadpool_t pool, pthreadpool_task_4d_t task, void* context, size_t i, size_t j,
                                size_t k, size_t l, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<4, 0>(task, context, {i, j, k, l}, {}, flags);
  PASS_ON(void, pthreadpool_parallelize_4d, pool, task, context, i, j, k, l, flags);
}

void pthreadpool_parallelize_4d_tile_2d(pthreadpool_t pool, pthreadpool_task_4d_tile_2d_t task, void* context, size_t i,
                                        size_t j, size_t k, size_t l, size_t tile_k, size_t tile_l, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<4, 2>(task, context, {i, j, k, l}, {tile_k, tile_l}, flags);
  PASS_ON(void, pthreadpool_parallelize_4d_tile_2d, pool, task, context, i, j, k, l, tile_k, tile_l, flags);
}

void pthreadpool_parallelize_5d(pthreadpool_t pool, pthreadpool_task_5d_t task, void* context, size_t i, size_t j,
                                size_t k, size_t l, size_t m, uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<5, 0>(task, context, {i, j, k, l, m}, {}, flags);
  PASS_ON(void, pthreadpool_parallelize_5d, pool, task, context, i, j, k, l, m, flags);
}

void pthreadpool_parallelize_5d_tile_2d(pthreadpool_t pool, pthreadpool_task_5d_tile_2d_t task, void* context, size_t i,
                                        size_t j, size_t k, size_t l, size_t m, size_t tile_l, size_t tile_m,
                                        uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<5, 2>(task, context, {i, j, k, l, m}, {tile_l, tile_m}, flags);
  PASS_ON(void, pthreadpool_parallelize_5d_tile_2d, pool, task, context, i, j, k, l, m, tile_l, tile_m, flags);
}

void pthreadpool_parallelize_6d_tile_2d(pthreadpool_t pool, pthreadpool_task_6d_tile_2d_t task, void* context, size_t i,
                                        size_t j, size_t k, size_t l, size_t m, size_t n, size_t tile_m, size_t tile_n,
                                        uint32_t flags) {
  if (IsOnTeam(pool)) return RunGrid<6, 2>(task, context, {i, j, k, l, m, n}, {tile_m, tile_n}, flags);
  PASS_ON(void, pthreadpool_parallelize_6d_tile_2d, pool, task, context, i, j, k, l, m, n, tile_m, tile_n, flags);
}

}  // extern "C"

#pragma GCC visibility pop

#undef PASS_ON

namespace permafrost {
namespace xnnpack {

void UsePoolsOfLeases() {
// The header overloads the names, so the functions are named as the linker does.
#define REPLACE(function)                                          \
  do {                                                             \
    extern char address_of_##function[] __asm__(#function);        \
    deferred::Xnnpack().Replace(#function, address_of_##function); \
  } while (false)
  REPLACE(pthreadpool_get_threads_count);
  REPLACE(pthreadpool_parallelize_1d);
  REPLACE(pthreadpool_parallelize_1d_tile_1d);
  REPLACE(pthreadpool_parallelize_2d);
  REPLACE(pthreadpool_parallelize_2d_tile_1d);
  REPLACE(pthreadpool_parallelize_2d_tile_2d);
  REPLACE(pthreadpool_parallelize_3d);
  REPLACE(pthreadpool_parallelize_3d_tile_2d);
  REPLACE(pthreadpool_parallelize_4d);
  REPLACE(pthreadpool_parallelize_4d_tile_2d);
  REPLACE(pthreadpool_parallelize_5d);
  REPLACE(pthreadpool_parallelize_5d_tile_2d);
  REPLACE(pthreadpool_parallelize_6d_tile_2d);
#undef REPLACE
}

}  // namespace xnnpack
}  // namespace permafrost
