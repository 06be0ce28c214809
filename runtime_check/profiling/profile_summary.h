// Adds up the profiles of many runs, by node and by type of node.
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

// Name and type of a row of the summary.
struct ProfileRowName {
  std::string name;  // Name of the node.
  std::string type;  // Type of the node: its op.
};

// One node, or one piece of a partition, over all runs. Times exclude nested nodes and pieces, so the rows add up to
// the run. The time of a partition that reports its pieces is the time between them.
struct ProfileRow {
  ProfileLabel label;
  ProfileRowName shown;
  int64_t num_runs = 0;   // Runs in which it ran.
  int64_t num_calls = 0;  // Total over all runs.
  double start_us = 0;    // Sum over the runs of its first start, relative to the start of the run.
  double first_us = 0;    // Time in the first run in which it ran.
  double total_us = 0;    // Total over all runs.
  double least_us = 0;    // Minimum over the runs.
  int64_t memory = 0;     // Bytes of its outputs in the last run.
  RunningStat memory_stat;
};

struct ProfileType {
  std::string type;
  int64_t num_rows = 0;
  int64_t num_calls = 0;  // Total over all runs.
  double total_us = 0;
  int64_t memory = 0;
};

// The sums over all added runs. Uses memory proportional to the number of nodes, not of runs.
class ProfileSummary {
 public:
  // `name_of` returns the name of a row. `memory_of` returns the bytes of the outputs of a piece, which a profile does
  // not contain. If they are null, the label is the name and pieces have no memory.
  using Namer = std::function<ProfileRowName(const ProfileLabel& label)>;
  using MemoryOf = std::function<int64_t(const ProfileLabel& label)>;
  explicit ProfileSummary(Namer name_of = nullptr, MemoryOf memory_of = nullptr);

  // Adds the runs that the profiler recorded since it was cleared.
  void Add(const Profiler& profiler);

  int64_t num_runs() const { return num_runs_; }
  int64_t num_dropped() const { return num_dropped_; }
  // Returns the rows in the order of their first start.
  std::vector<ProfileRow> Rows() const;
  // Returns the types, the most expensive first.
  std::vector<ProfileType> Types() const;
  // Return statistics over the runs: the sum of the rows' times, the sum of their memory, and the wall-clock time.
  const RunningStat& total_us() const { return total_us_; }
  const RunningStat& memory() const { return memory_; }
  const RunningStat& wall_us() const { return wall_us_; }

 private:
  void AddRun(const Profiler& profiler, const ProfileRun& run);

  Namer name_of_;
  MemoryOf memory_of_;
  int64_t num_runs_ = 0, num_dropped_ = 0;
  std::vector<ProfileRow> rows_;      // By label.
  std::vector<int64_t> first_start_;  // By label: its start in the first run that contains it.
  RunningStat total_us_, memory_, wall_us_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROFILING_PROFILE_SUMMARY_H_
