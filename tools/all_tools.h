// The list of the tools, for what offers all of them.
#ifndef PERMAFROST_TOOLS_ALL_TOOLS_H_
#define PERMAFROST_TOOLS_ALL_TOOLS_H_

#include <vector>

#include "tools/command_line/cli.h"

namespace permafrost {

// Sorted by name.
std::vector<Tool> AllTools();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_ALL_TOOLS_H_
