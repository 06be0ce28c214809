// Near misses as --explain prints them: grouped by reason, the closest to a match first.
#ifndef PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "transforms/pass.h"

namespace permafrost {

// Near misses with the same op, way out and reason; names in quotes and numbers are ignored in the comparison.
struct MissGroup {
  const MissedRewrite* first = nullptr;  // One of the near misses.
  int64_t count = 0;
  std::vector<std::string> nodes;  // Names of the first few nodes.
};

// Returns the groups: fewest failed conditions first, then those with a way out, then most frequent. O(n log n).
std::vector<MissGroup> GroupMisses(const std::vector<MissedRewrite>& misses);

// Prints one line per group, at most kMostMissGroups, and a line with the number of the rest.
inline constexpr size_t kMostMissGroups = 12;
std::vector<std::string> ExplainMisses(const std::vector<MissedRewrite>& misses);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_
