// Adds up the profiles of many runs: by node and by type of node.
#ifndef PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILE_SUMMARY_H_
#define PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILE_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime_check/profiling/profiler.h"
#include "runtime_check/profiling/run_statistics.h"

namespace permafrost {

// How a row of the summary is called.
struct ProfileRowName {
  std::string name;  // Of the node.
  std::string type;  // Of node: its op.
};

// One node, or one piece of a partition, over all runs. Times are those spent in itself, without what ran inside of it:
// so the rows add up to the run. A partition that reports its pieces is left with what lies between them.
struct ProfileRow {
  ProfileLabel label;
  ProfileRowName shown;
  int64_t num_runs = 0;   // In which it ran.
  int64_t num_calls = 0;  // In all runs together.
  double start_us = 0;    // Sum over the runs of when it first began, after the run did.
  double first_us = 0;    // In the first run in which it ran.
  double total_us = 0;    // Over all runs.
  double least_us = 0;    // In the run in which it was fastest.
  int64_t memory = 0;     // Bytes that it made in the last run.
  RunningStat memory_stat;
};

struct ProfileType {
  std::string type;
  int64_t num_rows = 0;
  int64_t num_calls = 0;  // In all runs together.
  double total_us = 0;
  int64_t memory = 0;
};

// Memory is proportional to the number of nodes, not of runs.
class ProfileSummary {
 public:
  // `name_of` says how a row is called, and `memory_of` what a piece makes, in bytes, for which a profile has no
  // answer; null, or a negative number: the label says.
  using Namer = std::function<ProfileRowName(const ProfileLabel& label)>;
  using MemoryOf = std::function<int64_t(const ProfileLabel& label)>;
  explicit ProfileSummary(Namer name_of = nullptr, MemoryOf memory_of = nullptr);

  // Adds what the profiler recorded since it was cleared.
  void Add(const Profiler& profiler);

  int64_t num_runs() const { return num_runs_; }
  int64_t num_dropped() const { return num_dropped_; }
  // In the order in which they first began.
  std::vector<ProfileRow> Rows() const;
  // The most expensive type first.
  std::vector<ProfileType> Types() const;
  // Over the runs: the sum of the rows' times, and of their memory; and how long the runs took by the clock.
  const RunningStat& total_us() const { return total_us_; }
  const RunningStat& memory() const { return memory_; }
  const RunningStat& wall_us() const { return wall_us_; }

 private:
  void AddRun(const Profiler& profiler, const ProfileRun& run);

  Namer name_of_;
  MemoryOf memory_of_;
  int64_t num_runs_ = 0, num_dropped_ = 0;
  std::vector<ProfileRow> rows_;      // By label.
  std::vector<int64_t> first_start_;  // By label: when it began in the run that saw it first.
  RunningStat total_us_, memory_, wall_us_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILE_SUMMARY_H_
