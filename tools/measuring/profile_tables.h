// The profile of a model as the original prints it, for people and for scripts that read its lines, and as CSV.
#ifndef PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_
#define PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "runtime_check/profiling/profile_summary.h"

namespace permafrost {

// Which tables, and how many rows of each; 0: all.
struct ProfileTableOptions {
  bool show_run_order = true;
  int32_t run_order_limit = 0;
  bool show_time = true;
  int32_t time_limit = 10;
  bool show_memory = true;
  int32_t memory_limit = 10;
  bool show_type = true;
  bool show_summary = true;
};

// "Run Order", "Top by Computation Time", "Top by Memory Use", "Summary by node type" and the lines "Timings
// (microseconds)", "Memory (bytes)" and "N nodes observed". Columns, widths and units are those of TensorFlow 1.x. Of
// rows that are equal in what they are sorted by, those that ran earlier come first.
void PrintProfile(const ProfileSummary& summary, const ProfileTableOptions& options, std::ostream& out);

// All rows in run order, after a line with the names of the columns. Names with commas or quotes are quoted.
std::string ProfileCsv(const ProfileSummary& summary);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_
