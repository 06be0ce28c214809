// What --explain says of a run: what computes which nodes, and why the delegate does not.
#ifndef PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_
#define PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_

#include "runtime_check/planning/plan.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"

namespace permafrost {

// A few lines for each partition, and one for each reason why nodes were left to the built-in kernels, the reason of
// most nodes first. Long lists are cut, and say by how much.
void PrintDelegation(const PlanReport& report, const Console& console);

// The same as one object, with everything.
void WriteDelegation(const PlanReport& report, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_
