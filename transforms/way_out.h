// Suggests a remedy that would turn a near miss into a match.
#ifndef PERMAFROST_TRANSFORMS_WAY_OUT_H_
#define PERMAFROST_TRANSFORMS_WAY_OUT_H_

#include <string>

#include "graph/matching/near_miss.h"

namespace permafrost {

// Returns a remedy such as "run fold_constants first", or an empty string if none is known. Inspects at most a fixed
// number of nodes.
std::string WayOutOf(const NearMiss& near_miss);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_WAY_OUT_H_
