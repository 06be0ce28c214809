// Implements the cache of thread pools.
#include "runtime_check/delegates/xnnpack/pools.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace permafrost {
namespace xnnpack {

absl::StatusOr<Pools::Lease> Pools::Take(int num_threads) {
  if (num_threads <= 1) return Lease(this, 1, nullptr);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<PoolPointer>& idle = idle_[num_threads];
    if (!idle.empty()) {
      Lease lease(this, num_threads, std::move(idle.back()));
      idle.pop_back();
      return lease;
    }
  }
  PoolPointer pool(pthreadpool_create(static_cast<size_t>(num_threads)));
  if (pool == nullptr) return absl::ResourceExhaustedError(absl::StrCat("cannot start ", num_threads, " threads"));
  return Lease(this, num_threads, std::move(pool));
}

void Pools::Return(int num_threads, PoolPointer pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_[num_threads].push_back(std::move(pool));
}

}  // namespace xnnpack
}  // namespace permafrost
