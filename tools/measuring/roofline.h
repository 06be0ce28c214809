// Roofline analysis: compares each node's throughput with the machine's peaks.
#ifndef PERMAFROST_TOOLS_MEASURING_ROOFLINE_H_
#define PERMAFROST_TOOLS_MEASURING_ROOFLINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime_check/profiling/profile_summary.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"
#include "tools/measuring/machine_peaks.h"
#include "tools/measuring/node_costs.h"

namespace permafrost {

// One node's throughput relative to the machine's peaks.
struct RooflineRow {
  std::string name, type;
  double seconds = 0;
  double flops_per_second = 0;
  // Bytes read and written, including weights, once each.
  double bytes_per_second = 0;
  // FLOPs per byte.
  double intensity = 0;
  // The larger of the least times for arithmetic and for memory traffic, divided by the measured time. Above 1 if
  // tensors stay in a cache, which is faster than memory.
  double share_of_roof = 0;
  bool is_bound_by_memory = false;
};

struct Roofline {
  MachinePeaks peaks;
  std::vector<RooflineRow> rows;  // Slowest first; only nodes with known costs.
};

// Returns one row for each node of the profile with known costs.
Roofline MakeRoofline(const ProfileSummary& summary, const NodeCosts& costs, const MachinePeaks& peaks);

// Prints at most `limit` rows; 0: all.
void PrintRoofline(const Roofline& roofline, size_t limit, const Console& console);
void WriteRoofline(const Roofline& roofline, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_ROOFLINE_H_
