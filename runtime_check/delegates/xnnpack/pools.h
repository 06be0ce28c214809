// The threads on which XNNPACK's operators run.
//
// The library divides its loops with pthreadpool, whose threads spin for milliseconds while they wait. Its calls are
// redirected to a WorkerTeam, which spins for a bounded time. A team is passed to the library as a pthreadpool_t.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_

#include <pthreadpool.h>

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime_check/threads/worker_teams.h"

namespace permafrost {
namespace xnnpack {

struct PoolDeleter {
  void operator()(pthreadpool_t pool) const { pthreadpool_destroy(pool); }
};
using PoolPointer = std::unique_ptr<struct pthreadpool, PoolDeleter>;

// Threads for one run of a partition, on the thread that took them.
class Lease {
 public:
  // ResourceExhausted if the threads cannot be started.
  static absl::StatusOr<Lease> Take(int num_threads);
  Lease(Lease&&) = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  // Null for one thread, which is the caller's. Only for calls of the library and of DivideTiles.
  pthreadpool_t get() const;

 private:
  Lease() = default;

  WorkerTeams::Lease team_;
  PoolPointer pool_;  // If the library's calls cannot be redirected.
};

// Calls task(context, begin, size) for the tiles of [0, range).
void DivideTiles(pthreadpool_t pool, void (*task)(void* context, size_t begin, size_t size), void* context,
                 size_t range, size_t tile);

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
