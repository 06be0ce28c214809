// The list of all tools.
#ifndef PERMAFROST_TOOLS_ALL_TOOLS_H_
#define PERMAFROST_TOOLS_ALL_TOOLS_H_

#include <vector>

#include "tools/command_line/cli.h"

namespace permafrost {

// Returns all tools, sorted by name.
std::vector<Tool> AllTools();

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_ALL_TOOLS_H_
