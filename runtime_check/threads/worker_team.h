// A fixed team of threads that share pieces of work.
#ifndef PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_
#define PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_

#include <memory>

#include "absl/functional/function_ref.h"

namespace permafrost {

// The calling thread is part of the team, so a team of one starts no thread. Runs one call of Run at a time: not for
// nested or concurrent use. Threads that wait spin for a bounded time, and then sleep.
class WorkerTeam {
 public:
  static constexpr int kMostThreads = 1024;
  static constexpr int kPiecesPerThread = 8;

  // `num_threads` is limited to 1 to kMostThreads. If the system starts fewer threads, the team has those.
  explicit WorkerTeam(int num_threads);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int num_threads() const;

  // Calls body(piece, thread) once for each piece of [0, pieces), and returns when all are done. `thread` is below
  // num_threads(); 0 is the caller. A thread that has no piece left runs pieces that no thread has started, so a thread
  // that waits for a processor does not hold up the others. With at most num_threads() pieces, pieces may wait for each
  // other. REQUIRES: pieces is at most kPiecesPerThread * num_threads().
  void Run(int pieces, absl::FunctionRef<void(int piece, int thread)> body);

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_THREADS_WORKER_TEAM_H_
