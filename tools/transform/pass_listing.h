// What passes there are and what they take, printed from their definitions.
#ifndef PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_
#define PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/command_line/console.h"

namespace permafrost {

// A line for each pass and each preset.
void ListPasses(const Console& console);
// The same as a JSON array with everything that the definitions say; presets have the key `transforms`.
void ListPassesAsJson(std::ostream& out);
// All that is known of one pass or preset. InvalidArgument with the nearest names when there is none of that name.
absl::Status DescribePass(absl::string_view name, const Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_TRANSFORM_PASS_LISTING_H_
