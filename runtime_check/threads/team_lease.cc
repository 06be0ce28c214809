// Keeps the idle teams of the process.
#include "runtime_check/threads/team_lease.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime_check/threads/spin_wait.h"
#include "runtime_check/threads/thread_lane.h"

namespace permafrost {

struct TeamLease::Kept {
  explicit Kept(int num_threads) : team(num_threads) {}

  WorkerTeam team;
  cpu_set_t processors;  // Those of the thread that started the team.
};

class TeamLease::Idle {
 public:
  static Idle& OfProcess() {
    static auto* const idle = new Idle;  // Sessions may outlive static objects.
    return *idle;
  }

  // Returns null if there is none.
  std::unique_ptr<Kept> Take(int num_threads, const cpu_set_t& processors) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(teams_.rbegin(), teams_.rend(), [&](const std::unique_ptr<Kept>& kept) {
      return kept->team.num_threads() == num_threads && CPU_EQUAL(&kept->processors, &processors);
    });
    if (found == teams_.rend()) return nullptr;
    std::unique_ptr<Kept> taken = std::move(*found);
    teams_.erase(std::next(found).base());
    return taken;
  }

  void Return(std::unique_ptr<Kept> kept) {
    std::unique_ptr<Kept> oldest;
    const std::lock_guard<std::mutex> lock(mutex_);
    teams_.push_back(std::move(kept));
    if (teams_.size() <= kMostTeams) return;
    oldest = std::move(teams_.front());
    teams_.pop_front();
  }

 private:
  // More sizes and sets of processors than one program uses at a time.
  static constexpr size_t kMostTeams = 16;

  // No thread changes the list during a fork. The child starts teams of its own: the threads of these do not exist in
  // it, and destroying the teams would wait for them.
  Idle() {
    pthread_atfork([] { OfProcess().mutex_.lock(); }, [] { OfProcess().mutex_.unlock(); },
                   [] {
                     new std::deque<std::unique_ptr<Kept>>(std::move(OfProcess().teams_));
                     OfProcess().teams_.clear();
                     OfProcess().mutex_.unlock();
                   });
  }

  std::mutex mutex_;
  std::deque<std::unique_ptr<Kept>> teams_;  // The last one was used last.
};

TeamLease::TeamLease(std::unique_ptr<Kept> kept) : kept_(std::move(kept)) {}
TeamLease::TeamLease(TeamLease&&) noexcept = default;

TeamLease::~TeamLease() {
  if (kept_ == nullptr) return;
  SpinWait::EndWork();
  Idle::OfProcess().Return(std::move(kept_));
}

WorkerTeam* TeamLease::team() const { return kept_ == nullptr ? nullptr : &kept_->team; }

absl::StatusOr<TeamLease> TeamLease::Take(int num_threads) {
  if (num_threads <= 1 || !kHasThreads) return TeamLease(nullptr);
  cpu_set_t processors;
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof(processors), &processors);  // Empty if it fails: with more processors than the set has.
  std::unique_ptr<Kept> kept = Idle::OfProcess().Take(num_threads, processors);
  if (kept == nullptr) {
    kept = std::make_unique<Kept>(num_threads);
    kept->processors = processors;
    if (kept->team.num_threads() < num_threads) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system started ", kept->team.num_threads() - 1, " threads, expected ", num_threads - 1));
    }
  }
  SpinWait::StartWork();
  return TeamLease(std::move(kept));
}

}  // namespace permafrost
