// The threads on which oneDNN's primitives and the delegate's own loops run.
//
// oneDNN, as the distribution builds it, computes in OpenMP's team, whose threads spin for milliseconds while they
// wait. Where the processor of one of them is busy with another process, each primitive then takes a time slice of the
// scheduler. So oneDNN's calls of OpenMP are redirected to a WorkerTeam, for the threads that run this delegate.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_TEAM_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_TEAM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "runtime_check/threads/worker_teams.h"

namespace permafrost {
namespace onednn {

// The number of threads of the calling thread's primitives and loops while it lives. oneDNN divides the work of a
// primitive by that number while the primitive is made, and runs on as many while it runs. Scopes nest.
class ThreadsInScope {
 public:
  explicit ThreadsInScope(int num_threads);
  ~ThreadsInScope();
  ThreadsInScope(const ThreadsInScope&) = delete;
  ThreadsInScope& operator=(const ThreadsInScope&) = delete;

 private:
  WorkerTeams::Lease lease_;
  WorkerTeam* threads_before_;
  int num_threads_before_;
  int openmp_before_ = 0;  // 0: OpenMP's own setting was not changed.
};

// Calls body(thread, team) once for each thread of a team, which has at most `num_threads` threads. In a scope of fewer
// threads, and inside of another team, the team is the calling thread.
void RunTeam(int num_threads, absl::FunctionRef<void(int thread, int team)> body);

// Divides [0, count) evenly among the threads of a team.
void DivideLoop(int num_threads, int64_t count, absl::FunctionRef<void(int64_t begin, int64_t end, int thread)> body);

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_TEAM_H_
