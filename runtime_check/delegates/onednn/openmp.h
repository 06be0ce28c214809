// The threads of oneDNN and of the loops of this delegate.
//
// oneDNN, as the distribution builds it, divides its work with OpenMP. The threads of GCC's OpenMP library spin for
// milliseconds while they wait, so beside another busy process each loop takes a time slice of the scheduler.
// openmp.cc defines the functions of that library that oneDNN imports, on a WorkerTeam, whose threads spin for a
// bounded time. The dynamic linker resolves them to the first definition in its search order: to these, if they are
// exported and no other library comes first. Otherwise oneDNN uses GCC's library, with the same results. Calls of
// threads outside of a TeamInScope are passed on to GCC's library.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_OPENMP_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_OPENMP_H_

#include "absl/status/status.h"
#include "runtime_check/threads/team_lease.h"

namespace permafrost {
namespace onednn {

// Loads oneDNN and OpenMP, and makes oneDNN call the functions of openmp.cc if it was loaded through the bundle of
// libraries; further calls have no effect. Thread-safe. Returns NotFound if one is not installed,
// FailedPrecondition if it cannot be loaded.
absl::Status InitializeLibrary();

// Sets OpenMP's number of threads for the calling thread, and restores it at the end of the scope. oneDNN divides the
// work of a primitive by that number when the primitive is created, and must run it with the same number.
class ThreadsInScope {
 public:
  explicit ThreadsInScope(int num_threads);
  ~ThreadsInScope();
  ThreadsInScope(const ThreadsInScope&) = delete;
  ThreadsInScope& operator=(const ThreadsInScope&) = delete;

 private:
  const int before_, library_before_;
};

// Gives the parallel regions of the calling thread a team. Regions inside of a region run on one thread.
class TeamInScope {
 public:
  explicit TeamInScope(TeamLease lease);
  ~TeamInScope();
  TeamInScope(const TeamInScope&) = delete;
  TeamInScope& operator=(const TeamInScope&) = delete;

 private:
  const TeamLease lease_;
  WorkerTeam* const before_;
};

}  // namespace onednn
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_ONEDNN_OPENMP_H_
