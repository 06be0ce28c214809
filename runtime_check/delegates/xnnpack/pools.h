// A cache of thread pools that are leased for one run at a time.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_

#include <pthreadpool.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace permafrost {
namespace xnnpack {

struct PoolDeleter {
  void operator()(pthreadpool_t pool) const { pthreadpool_destroy(pool); }
};
using PoolPointer = std::unique_ptr<struct pthreadpool, PoolDeleter>;

// A cache of thread pools. The partitions of a session run one after the other and so share one pool; concurrent
// sessions use separate pools. Thread-safe. Must outlive its leases.
class Pools {
 public:
  // A thread pool in use. Returns the pool to the cache when it is destroyed.
  class Lease {
   public:
    Lease(Pools* pools, int num_threads, PoolPointer pool)
        : pools_(pools), num_threads_(num_threads), pool_(std::move(pool)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pools_->Return(num_threads_, std::move(pool_));
    }
    pthreadpool_t get() const { return pool_.get(); }  // Null for one thread, the caller's.

   private:
    Pools* pools_;
    int num_threads_;
    PoolPointer pool_;
  };

  // Leases a pool. Returns ResourceExhausted if the threads cannot be started.
  absl::StatusOr<Lease> Take(int num_threads);

 private:
  void Return(int num_threads, PoolPointer pool);

  std::mutex mutex_;
  std::map<int, std::vector<PoolPointer>> idle_;  // Idle pools by number of threads.
};

}  // namespace xnnpack
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_XNNPACK_POOLS_H_
