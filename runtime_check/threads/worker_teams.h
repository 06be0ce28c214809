// Teams of threads, lent out for one run at a time.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAMS_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAMS_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime_check/threads/worker_team.h"

namespace permafrost {

// The partitions of a session run one after the other and so share a team. Sessions that run at the same time get teams
// of their own. Thread-safe.
class WorkerTeams {
 public:
  // The teams of this process, for the delegates.
  static WorkerTeams& Global() {
    static auto* const teams = new WorkerTeams;  // Threads of it may outlive static objects.
    return *teams;
  }

  // Returns the team when it is destroyed.
  class Lease {
   public:
    Lease() = default;
    Lease(WorkerTeams* teams, int num_threads, std::unique_ptr<WorkerTeam> team)
        : teams_(teams), num_threads_(num_threads), team_(std::move(team)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = default;
    ~Lease() {
      if (team_ != nullptr) teams_->Return(num_threads_, std::move(team_));
    }
    // Null for one thread, which is the caller's.
    WorkerTeam* get() const { return team_.get(); }

   private:
    WorkerTeams* teams_ = nullptr;
    int num_threads_ = 1;
    std::unique_ptr<WorkerTeam> team_;
  };

  Lease Take(int num_threads) {
    if (num_threads <= 1) return Lease();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<std::unique_ptr<WorkerTeam>>& idle = idle_[num_threads];
      if (!idle.empty()) {
        Lease lease(this, num_threads, std::move(idle.back()));
        idle.pop_back();
        return lease;
      }
    }
    return Lease(this, num_threads, std::make_unique<WorkerTeam>(num_threads));
  }

 private:
  void Return(int num_threads, std::unique_ptr<WorkerTeam> team) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_[num_threads].push_back(std::move(team));
  }

  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<WorkerTeam>>> idle_;  // By number of threads.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAMS_H_
