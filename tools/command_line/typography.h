// Detects typographic dashes and quotes in commands pasted from a web page or a word processor.
#ifndef PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_
#define PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace permafrost {

// Checks an argument. InvalidArgument if `argument` starts with a dash that is not ASCII's ("–-in_graph", "—in_graph"),
// or if it, or the value after "=", starts or ends with a typographic quote. The message names the character and shows
// the corrected argument. Characters further inside are accepted, since file names may contain them.
absl::Status CheckTypography(absl::string_view argument);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_COMMAND_LINE_TYPOGRAPHY_H_
