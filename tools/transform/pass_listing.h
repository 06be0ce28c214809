// Lists the passes and their parameters, from their definitions.
#ifndef PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_
#define PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/command_line/console.h"

namespace permafrost {

// Prints one line per pass and per preset.
void ListPasses(const Console& console);
// Writes all definitions in full as a JSON array; presets have the key `transforms`.
void ListPassesAsJson(std::ostream& out);
// Prints all details of one pass or preset. InvalidArgument with the nearest names if the name is unknown.
absl::Status DescribePass(absl::string_view name, const Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_
