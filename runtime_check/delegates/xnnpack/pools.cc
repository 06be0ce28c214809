// The functions of pthreadpool that XNNPACK calls, on a WorkerTeam.
#include "runtime_check/delegates/xnnpack/pools.h"

#include <dlfcn.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/imports.h"

namespace permafrost {
namespace xnnpack {
namespace {

constexpr size_t kMostDims = 6;

// Of the calling thread's lease. Other code of the process may use the same library with pools of its own.
thread_local WorkerTeam* leased = nullptr;

bool IsOurs(pthreadpool_t pool) { return pool != nullptr && reinterpret_cast<WorkerTeam*>(pool) == leased; }

// Has the processor treat denormals as zeros while it lives, if asked to.
class DenormalsInScope {
 public:
  explicit DenormalsInScope(uint32_t flags) : is_changed_((flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS) != 0) {
    if (!is_changed_) return;
#if defined(__x86_64__)
    before_ = _mm_getcsr();
    _mm_setcsr(static_cast<unsigned>(before_) | 0x8040);  // Flush to zero, and denormals are zeros.
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | (uint64_t{1} << 24)));  // Flush to zero.
#endif
  }
  ~DenormalsInScope() {
    if (!is_changed_) return;
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(before_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(before_));
#endif
  }
  DenormalsInScope(const DenormalsInScope&) = delete;
  DenormalsInScope& operator=(const DenormalsInScope&) = delete;

 private:
  const bool is_changed_;
  uint64_t before_ = 0;
};

// Calls task(at, size) for all tiles of `dims` ranges, the last one varying fastest.
void RunTiles(size_t dims, const size_t* range, const size_t* tile, uint32_t flags,
              absl::FunctionRef<void(const size_t* at, const size_t* size)> task) {
  size_t counts[kMostDims], total = 1;
  for (size_t d = 0; d < dims; ++d) {
    counts[d] = range[d] == 0 ? 0 : (range[d] - 1) / tile[d] + 1;
    total *= counts[d];
  }
  if (total == 0) return;
  const auto run = [&](size_t begin, size_t end) {
    const DenormalsInScope denormals(flags);
    size_t index[kMostDims], at[kMostDims], size[kMostDims];
    for (size_t d = dims, rest = begin; d-- > 0; rest /= counts[d]) index[d] = rest % counts[d];
    for (size_t i = begin; i < end; ++i) {
      for (size_t d = 0; d < dims; ++d) {
        at[d] = index[d] * tile[d];
        size[d] = std::min(tile[d], range[d] - at[d]);
      }
      task(at, size);
      for (size_t d = dims; d-- > 0 && ++index[d] == counts[d];) index[d] = 0;
    }
  };
  // Several pieces for each thread, so that one that is preempted holds up little.
  const size_t pieces =
      std::min(total, static_cast<size_t>(WorkerTeam::kPiecesPerThread) * static_cast<size_t>(leased->num_threads()));
  if (pieces == 1) return run(0, total);
  leased->Run(static_cast<int>(pieces), [&](int piece, int) {
    const auto i = static_cast<size_t>(piece);
    const size_t size = total / pieces, longer = total % pieces;
    const size_t begin = i * size + std::min(i, longer);
    run(begin, begin + size + (i < longer ? 1 : 0));
  });
}

template <size_t>
using Size = size_t;

// A function of pthreadpool: of as many ranges as Dims has numbers, the last of which are divided into tiles.
template <typename Dims, typename Tiles>
struct Divided;

template <size_t... D, size_t... T>
struct Divided<std::index_sequence<D...>, std::index_sequence<T...>> {
  using Task = void (*)(void* context, Size<D>..., Size<T>...);
  using Function = void (*)(pthreadpool_t, Task, void* context, Size<D>... ranges, Size<T>... tiles, uint32_t flags);

  template <Function kReal>
  static void Run(pthreadpool_t pool, Task task, void* context, Size<D>... ranges, Size<T>... tiles, uint32_t flags) {
    if (!IsOurs(pool)) return kReal(pool, task, context, ranges..., tiles..., flags);
    constexpr size_t kDims = sizeof...(D), kUntiled = kDims - sizeof...(T);
    const size_t range[] = {ranges...};
    size_t tile[kDims];
    std::fill(tile, tile + kDims, 1);
    ((tile[kUntiled + T] = tiles), ...);
    RunTiles(kDims, range, tile, flags,
             [&](const size_t* at, const size_t* size) { task(context, at[D]..., size[kUntiled + T]...); });
  }
};

size_t CountThreads(pthreadpool_t pool) {
  return IsOurs(pool) ? static_cast<size_t>(leased->num_threads()) : pthreadpool_get_threads_count(pool);
}

template <size_t kDims, size_t kTiles>
using DividedInto = Divided<std::make_index_sequence<kDims>, std::make_index_sequence<kTiles>>;

#define PERMAFROST_DIVIDED(name, dims, tiles)                                                               \
  Import {                                                                                                  \
#name, reinterpret_cast < void*>                                                                        \
               (&DividedInto <dims, tiles>::Run <static_cast <DividedInto <dims, tiles>::Function>(&name)>) \
  }

// Whether the library divides its loops among the threads of a team. Otherwise it uses pools of pthreadpool.
bool IsRedirected() {
  static const bool is_redirected = [] {
    // Not the address of the function, which in a program may be that of a stub in the program.
    const void* const inside = dlsym(RTLD_DEFAULT, "xnn_run_operator");
    return inside != nullptr &&
           RedirectImports(inside, {
                                       {"pthreadpool_get_threads_count", reinterpret_cast<void*>(&CountThreads)},
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_1d, 1, 0),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_1d_tile_1d, 1, 1),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_2d, 2, 0),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_2d_tile_1d, 2, 1),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_2d_tile_2d, 2, 2),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_3d, 3, 0),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_3d_tile_2d, 3, 2),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_4d, 4, 0),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_4d_tile_2d, 4, 2),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_5d, 5, 0),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_5d_tile_2d, 5, 2),
                                       PERMAFROST_DIVIDED(pthreadpool_parallelize_6d_tile_2d, 6, 2),
                                   });
  }();
  return is_redirected;
}

#undef PERMAFROST_DIVIDED

}  // namespace

absl::StatusOr<Lease> Lease::Take(int num_threads) {
  Lease lease;
  if (num_threads <= 1) return lease;
  if (IsRedirected()) {
    lease.team_ = WorkerTeams::Global().Take(num_threads);
    leased = lease.team_.get();
    return lease;
  }
  lease.pool_.reset(pthreadpool_create(static_cast<size_t>(num_threads)));
  if (lease.pool_ == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", num_threads, " threads"));
  return lease;
}

Lease::~Lease() {
  if (team_.get() != nullptr) leased = nullptr;
}

pthreadpool_t Lease::get() const {
  return team_.get() != nullptr ? reinterpret_cast<pthreadpool_t>(team_.get()) : pool_.get();
}

void DivideTiles(pthreadpool_t pool, void (*task)(void* context, size_t begin, size_t size), void* context,
                 size_t range, size_t tile) {
  using Tiles = DividedInto<1, 1>;
  Tiles::Run<static_cast<Tiles::Function>(&pthreadpool_parallelize_1d_tile_1d)>(pool, task, context, range, tile, 0);
}

}  // namespace xnnpack
}  // namespace permafrost
