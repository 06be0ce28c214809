// How near each node comes to what the machine can do.
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

struct RooflineRow {
  std::string name, type;
  double seconds = 0;
  double flops_per_second = 0;
  double bytes_per_second = 0;  // Of what goes in and out, weights included, once each.
  double intensity = 0;         // FLOPs for each byte.
  // Of the least time that arithmetic and memory traffic leave, whichever is longer, in the time that it took. Above 1
  // where tensors stay in a cache, which is faster than memory.
  double share_of_roof = 0;
  bool is_bound_by_memory = false;
};

struct Roofline {
  MachinePeaks peaks;
  std::vector<RooflineRow> rows;  // The slowest first; of nodes whose costs are known.
};

Roofline MakeRoofline(const ProfileSummary& summary, const NodeCosts& costs, const MachinePeaks& peaks);

// At most `limit` rows; 0: all.
void PrintRoofline(const Roofline& roofline, size_t limit, const Console& console);
void WriteRoofline(const Roofline& roofline, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MEASURING_ROOFLINE_H_
