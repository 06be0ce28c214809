// Output of --explain for a run: the delegate of each node, and the reasons why nodes were not delegated.
#ifndef PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_
#define PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_

#include "runtime_check/planning/plan.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"

namespace permafrost {

// Prints a few lines per partition, and one per reason why nodes were left to the built-in kernels, the most frequent
// reason first. Long lists are truncated and give the number of omitted items.
void PrintDelegation(const PlanReport& report, const Console& console);

// Writes the complete listing as one object.
void WriteDelegation(const PlanReport& report, JsonWriter* json);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_DELEGATION_LISTING_H_
