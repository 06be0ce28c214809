// The threads of XNNPACK's operators.
//
// XNNPACK divides its loops with pthreadpool, whose threads spin for milliseconds while they wait, so beside another
// busy process each loop takes a time slice of the scheduler. pools.cc defines the functions of that library that
// XNNPACK imports, on a WorkerTeam, whose threads spin for a bounded time. The dynamic linker resolves them to the
// first definition in its search order: to these, if they are exported and no other library comes first. Otherwise
// XNNPACK uses a pool of pthreadpool, with the same results. Calls with another pool are passed on to pthreadpool.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_

#include <pthreadpool.h>

#include <utility>

#include "absl/status/statusor.h"
#include "runtime_check/threads/team_lease.h"

namespace permafrost {
namespace xnnpack {

// Makes XNNPACK call the functions of pools.cc if it was loaded through the bundle of libraries.
void UsePoolsOfLeases();

// Threads for one run of a partition on the calling thread. At most one exists per thread at a time.
class PoolLease {
 public:
  // Returns ResourceExhausted if the threads cannot be started.
  static absl::StatusOr<PoolLease> Take(int num_threads);
  PoolLease(PoolLease&&) = default;
  PoolLease& operator=(PoolLease&&) = delete;
  ~PoolLease();

  pthreadpool_t get() const { return pool_; }  // Null for one thread, the caller's.

 private:
  explicit PoolLease(TeamLease lease) : lease_(std::move(lease)) {}

  TeamLease lease_;
  pthreadpool_t pool_ = nullptr;
};

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
