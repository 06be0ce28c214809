// Reads the ranges that Print nodes after RequantizationRange nodes have logged.
#ifndef PERMAFROST_TRANSFORMS_REWRITES_RANGE_LOG_H_
#define PERMAFROST_TRANSFORMS_REWRITES_RANGE_LOG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

struct RangeRecords {
  std::vector<float> mins;  // In the order of the log.
  std::vector<float> maxes;
};

struct RangeLog {
  std::map<std::string, RangeRecords> nodes;  // By the name of the RequantizationRange.
  int64_t num_records = 0;
  int64_t num_malformed = 0;    // Lines with the mark of a record that cannot be parsed.
  int64_t num_unusable = 0;     // Records with NaN, an infinity or a minimum above the maximum.
  std::string first_malformed;  // With its position: "line 3: ...".
  std::string first_unusable;
};

// Parses a log. A record is a line that contains `;<node>__print__;__requant_min_max:[<min>][<max>]`. Any text may
// precede it, and any text may follow after another `;`. Only the last record of a line counts. Other lines are
// skipped. O(text).
RangeLog ParseRangeLog(absl::string_view text);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_REWRITES_RANGE_LOG_H_
