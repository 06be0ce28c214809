// What --explain says of near misses: equal reasons together, the ones nearest to a match first.
#ifndef PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_
#define PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "transforms/pass.h"

namespace permafrost {

// Near misses whose op, way out and reason are the same, when names in quotes and numbers count as equal.
struct MissGroup {
  const MissedRewrite* first = nullptr;  // One of the misses given.
  int64_t count = 0;
  std::vector<std::string> nodes;  // The names of the first few.
};

// Those with the fewest failed conditions first, then those with a way out, then the most frequent. O(n log n).
std::vector<MissGroup> GroupMisses(const std::vector<MissedRewrite>& misses);

// One line for each group, at most kMostMissGroups, and a line that counts the rest.
inline constexpr size_t kMostMissGroups = 12;
std::vector<std::string> ExplainMisses(const std::vector<MissedRewrite>& misses);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_EXPLANATION_H_
