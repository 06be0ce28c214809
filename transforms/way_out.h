// What would turn a near miss into a match.
#ifndef PERMAFROST_TRANSFORMS_WAY_OUT_H_
#define PERMAFROST_TRANSFORMS_WAY_OUT_H_

#include <string>

#include "graph/matching/near_miss.h"

namespace permafrost {

// "run fold_constants first", or empty where nothing would help that we know of. Looks at no more than a fixed number
// of nodes.
std::string WayOutOf(const NearMiss& near_miss);

}  // namespace permafrost

#endif  // PERMAFROST_TRANSFORMS_WAY_OUT_H_
