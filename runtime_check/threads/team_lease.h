// The teams of threads of the delegates.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_TEAM_LEASE_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_TEAM_LEASE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime_check/threads/worker_team.h"

namespace permafrost {

// Exclusive use of a team. Idle teams are kept for later leases, so the partitions of a session, which run one after
// the other, share a team, and concurrent sessions have separate ones.
class TeamLease {
 public:
  // Takes an idle team of this size whose threads may run on the processors of the calling thread, or starts one.
  // Thread-safe. Returns ResourceExhausted if the system does not start so many threads.
  static absl::StatusOr<TeamLease> Take(int num_threads);

  TeamLease(TeamLease&&) noexcept;
  TeamLease& operator=(TeamLease&&) = delete;
  ~TeamLease();

  // Null for one thread, the caller's.
  WorkerTeam* team() const;

 private:
  struct Kept;
  class Idle;
  explicit TeamLease(std::unique_ptr<Kept> kept);

  std::unique_ptr<Kept> kept_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_TEAM_LEASE_H_
