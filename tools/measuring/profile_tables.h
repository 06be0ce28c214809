// Prints a model's profile in the format of TensorFlow's tool, which scripts parse, and as CSV.
#ifndef PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_
#define PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "runtime_check/profiling/profile_summary.h"

namespace permafrost {

// Selects the tables, and the number of rows of each; 0: all.
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

// Prints "Run Order", "Top by Computation Time", "Top by Memory Use", "Summary by node type" and the lines "Timings
// (microseconds)", "Memory (bytes)" and "N nodes observed". Columns, widths and units are those of TensorFlow 1.x. Rows
// with equal sort keys are in run order.
void PrintProfile(const ProfileSummary& summary, const ProfileTableOptions& options, std::ostream& out);

// Returns all rows in run order, after a header line. Names with commas or quotes are quoted.
std::string ProfileCsv(const ProfileSummary& summary);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_PROFILE_TABLES_H_
